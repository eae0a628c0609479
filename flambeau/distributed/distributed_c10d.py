"""`torch.distributed.distributed_c10d`: the names of groups and collectives, in one place."""

from __future__ import annotations

import importlib.util
from typing import Any

from flambeau._core.missing import missing
from flambeau.distributed.backends import MISSING, Backend
from flambeau.distributed.collectives import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
)
from flambeau.distributed.debug_level import (
    DebugLevel,
    get_debug_level,
    set_debug_level,
    set_debug_level_from_env,
)
from flambeau.distributed.errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    QueueEmptyError,
)
from flambeau.distributed.group import ProcessGroup
from flambeau.distributed.messages import P2POp, batch_isend_irecv, irecv, isend, recv, send
from flambeau.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from flambeau.distributed.reduce_op import RedOpType, ReduceOp, supports_complex
from flambeau.distributed.rendezvous import register_rendezvous_handler, rendezvous
from flambeau.distributed.stores import FileStore, HashStore, PrefixStore, Store, TCPStore
from flambeau.distributed.work import Work
from flambeau.distributed.world import DEFAULT_TIMEOUT as default_pg_timeout
from flambeau.distributed.world import (
    GroupMember,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_initialized,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    split_group,
)

__all__ = [
    "Backend",
    "DebugLevel",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GroupMember",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "QueueEmptyError",
    "RedOpType",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "default_pg_timeout",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_backend_config",
    "get_debug_level",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "register_rendezvous_handler",
    "rendezvous",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_debug_level",
    "set_debug_level_from_env",
    "split_group",
    "supports_complex",
]


def is_gloo_available() -> bool:
    """Whether the backend "gloo" is there: always."""
    return True


def is_mpi_available() -> bool:
    """Whether the backend "mpi" is there: where mpi4py is installed."""
    return importlib.util.find_spec("mpi4py") is not None


def is_nccl_available() -> bool:
    """Whether the backend "nccl" is there: it is not."""
    return False


def is_ucc_available() -> bool:
    """Whether the backend "ucc" is there: it is not."""
    return False


def is_xccl_available() -> bool:
    """Whether the backend "xccl" is there: it is not."""
    return False


def is_backend_available(backend: str) -> bool:
    """Whether a library for communication is there."""
    name = backend.lower()
    if name == "mpi":
        return is_mpi_available()
    return name not in MISSING and name in Backend.backend_list


def _get_default_group() -> ProcessGroup:
    """The group of all processes."""
    from flambeau.distributed.world import world

    return world()


def _rank_not_in_group(group: Any) -> bool:
    """Whether a group is one that this process is not in."""
    return group == GroupMember.NON_GROUP_MEMBER


def __getattr__(name: str) -> Any:
    return missing("torch.distributed", name)
