"""`torch.distributed`: programs of several processes.

How it works: docs/distributed.md. What PyTorch has and this has not raises an error that names it.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from flambeau._core.missing import missing
from flambeau.distributed.absent import make_modules
from flambeau.distributed.distributed_c10d import *  # noqa: F403


def is_available() -> bool:
    """Whether processes can be joined to a group: they can."""
    return True


def is_torchelastic_launched() -> bool:
    """Whether torchrun's elastic agent started this process; it says so in the environment."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank among the processes of this machine, which torchrun gives as LOCAL_RANK.

    Raises:
        RuntimeError: nobody gave it, and there is no `fallback_rank`.
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work, assuming you are not running in a multi-device context "
        "and want the code to run locally instead."
    )


make_modules()


LATER = {
    "DeviceMesh": "device_mesh", "init_device_mesh": "device_mesh", "device_mesh": None,
    "GradBucket": "data_parallel.buckets", "BuiltinCommHookType": "data_parallel.builtin_hooks",
    "tensor": None, "_tensor": None, "fsdp": None, "_composable": None, "algorithms": None,
    "_functional_collectives": None, "utils": None,
}  # fmt: skip
"""Modules that are imported when they are first asked for, and names of theirs."""


def __getattr__(name: str) -> Any:
    if name not in LATER:
        return missing(__name__, name)
    module = importlib.import_module(f"{__name__}.{LATER[name] or name}")
    return getattr(module, name) if LATER[name] else module
