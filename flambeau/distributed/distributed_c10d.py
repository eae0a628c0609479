"""`torch.distributed.distributed_c10d`: groups of processes, of which there are none."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, ClassVar

from flambeau._core.missing import missing

NOT_INITIALIZED = (
    "Default process group has not been initialized, please make sure to call init_process_group."
)


class RedOpType(enum.IntEnum):
    """Ways to make one value of many."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


class ReduceOp:
    """A way to make one value of many: `ReduceOp.SUM` and others."""

    RedOpType = RedOpType
    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM


class ProcessGroup:
    """A group of processes. None can be made here; the class is there to be asked for."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        missing("torch.distributed", "init_process_group")


class Work:
    """A communication that runs. There is none; the class is there to be asked for."""


class Backend(str):
    """The name of a library that communicates, in lower case.

    Raises:
        ValueError: it is no text.
    """

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    XCCL = "xccl"
    UCC = "ucc"
    MPI = "mpi"
    FAKE = "fake"
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return str.__new__(cls, name.lower())


class GroupMember:
    """Where the group of all processes is kept, if there is one."""

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER = -100


class group:  # noqa: N801  its name in PyTorch
    """`group.WORLD`: the group of all processes."""

    WORLD: ProcessGroup | None = None


def is_initialized() -> bool:
    """Whether there is a group of all processes."""
    return GroupMember.WORLD is not None


def _absent(name: str) -> Callable[[], bool]:
    def function() -> bool:
        return False

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Whether this library for communication is there: it is not."
    return function


is_gloo_available = _absent("is_gloo_available")
is_mpi_available = _absent("is_mpi_available")
is_nccl_available = _absent("is_nccl_available")
is_ucc_available = _absent("is_ucc_available")
is_xccl_available = _absent("is_xccl_available")


def is_backend_available(backend: str) -> bool:
    """Whether a library for communication is there: none is."""
    return False


def _needs_a_group(name: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise ValueError(NOT_INITIALIZED)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "It needs a process group, and raises ValueError since there is none."
    return function


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """End a group. Raises AssertionError: there is none."""
    raise AssertionError("Process group cannot be None")


all_gather = _needs_a_group("all_gather")
all_gather_into_tensor = _needs_a_group("all_gather_into_tensor")
all_gather_object = _needs_a_group("all_gather_object")
all_reduce = _needs_a_group("all_reduce")
all_to_all = _needs_a_group("all_to_all")
all_to_all_single = _needs_a_group("all_to_all_single")
barrier = _needs_a_group("barrier")
broadcast = _needs_a_group("broadcast")
broadcast_object_list = _needs_a_group("broadcast_object_list")
gather = _needs_a_group("gather")
gather_object = _needs_a_group("gather_object")
get_backend = _needs_a_group("get_backend")
get_rank = _needs_a_group("get_rank")
get_world_size = _needs_a_group("get_world_size")
irecv = _needs_a_group("irecv")
isend = _needs_a_group("isend")
monitored_barrier = _needs_a_group("monitored_barrier")
new_group = _needs_a_group("new_group")
recv = _needs_a_group("recv")
reduce = _needs_a_group("reduce")
reduce_scatter = _needs_a_group("reduce_scatter")
reduce_scatter_tensor = _needs_a_group("reduce_scatter_tensor")
scatter = _needs_a_group("scatter")
scatter_object_list = _needs_a_group("scatter_object_list")
send = _needs_a_group("send")


def __getattr__(name: str) -> Any:
    return missing("torch.distributed", name)
