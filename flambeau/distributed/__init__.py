"""`torch.distributed`: programs of several processes.

How it works: docs/distributed.md. What PyTorch has and this has not raises an error that names it.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from flambeau._core.missing import missing
from flambeau.distributed.absent import make_modules
from flambeau.distributed.distributed_c10d import (
    Backend,
    DebugLevel,
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    FileStore,
    GroupMember,
    HashStore,
    P2POp,
    PrefixStore,
    ProcessGroup,
    QueueEmptyError,
    RedOpType,
    ReduceOp,
    Store,
    TCPStore,
    Work,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_object,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    broadcast_object_list,
    default_pg_timeout,
    destroy_process_group,
    gather,
    gather_object,
    get_backend,
    get_backend_config,
    get_debug_level,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
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
    new_subgroups,
    new_subgroups_by_enumeration,
    recv,
    recv_object_list,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    register_rendezvous_handler,
    rendezvous,
    scatter,
    scatter_object_list,
    send,
    send_object_list,
    set_debug_level,
    set_debug_level_from_env,
    split_group,
    supports_complex,
)


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
