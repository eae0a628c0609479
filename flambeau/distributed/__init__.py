"""`torch.distributed`, as far as a single process without a process group needs it.

`is_available()` is False. Names by which libraries annotate and compare are there; what would need
a process group raises what PyTorch raises before `init_process_group`, which itself is missing.
"""

from __future__ import annotations

import os
from typing import Any

from flambeau._core.missing import missing
from flambeau.distributed.absent import make_modules
from flambeau.distributed.distributed_c10d import (
    Backend,
    GroupMember,
    ProcessGroup,
    ReduceOp,
    Work,
    all_gather,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    broadcast_object_list,
    destroy_process_group,
    gather,
    gather_object,
    get_backend,
    get_rank,
    get_world_size,
    group,
    irecv,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_ucc_available,
    is_xccl_available,
    isend,
    monitored_barrier,
    new_group,
    recv,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
    scatter_object_list,
    send,
)


def is_available() -> bool:
    """Whether processes can be joined to a group: they cannot."""
    return False


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


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
