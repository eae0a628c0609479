"""What each backend is made of: `gloo`, `mpi`, `fake`; and what those that are missing need."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar, NoReturn

from flambeau._core.missing import NotImplementedInFlambeau
from flambeau.distributed.errors import DistBackendError
from flambeau.distributed.group import ProcessGroup, group_number
from flambeau.distributed.stores import Store
from flambeau.distributed.transport.call import Exchange
from flambeau.distributed.transport.messages import MeshMessages, Messages, NoMessages
from flambeau.distributed.transport.silent import LonelyExchange, SilentExchange

MISSING = {
    "nccl": "Distributed package doesn't have NCCL built in\n"
    "Collectives between GPUs need nccl4py and nvidia-nccl-cu13, for which flambeau has no "
    'backend yet; use "gloo" with tensors in the computer\'s memory.',
    "ucc": "Distributed package doesn't have UCC built in",
    "xccl": "Distributed package doesn't have XCCL built in",
}


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

    default_device_backend_map: ClassVar[dict[str, str]] = {
        "cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO,
    }  # fmt: skip
    """The backend that a device's collectives take when none is named."""

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return str.__new__(cls, name.lower())

    @classmethod
    def register_backend(cls, name: str, *args: Any, **kwargs: Any) -> NoReturn:
        """Backends of other packages are not implemented."""
        raise NotImplementedInFlambeau(
            "torch.distributed.Backend.register_backend is not implemented"
        )


def choose(asked: str | None) -> str:
    """The one backend that a name such as "gloo" or "cpu:gloo,cuda:fake" stands for here.

    Raises:
        AssertionError: PyTorch has no such backend either. RuntimeError: it is missing, be it for
            one kind of device among others.
    """
    name = Backend(asked or "gloo")
    if ":" in name:
        of_device = dict(part.split(":", 1) for part in name.split(","))
        for each in of_device.values():
            if each in MISSING:
                raise RuntimeError(MISSING[each])
        name = Backend(of_device.get("cpu", next(iter(of_device.values()))))
    if name == Backend.UNDEFINED:
        name = Backend("gloo")
    if name in MISSING:
        raise RuntimeError(MISSING[name])
    if name not in Backend.backend_list:
        raise AssertionError(f"Unknown backend type {name}")
    return str(name)


def gloo_group(mesh: Any, store: Store, ranks: Sequence[int], timeout: timedelta, name: str,
               desc: str) -> ProcessGroup:  # fmt: skip
    """A group over a mesh: through shared memory where all share a machine, else over sockets."""
    rank = list(ranks).index(mesh.rank)
    messages = MeshMessages(mesh, group_number(name), ranks)
    exchange = _gloo_exchange(mesh, store, ranks, rank, timeout, name)
    return ProcessGroup(ranks, rank, "gloo", exchange, messages, store, timeout, name, desc)


def _gloo_exchange(mesh: Any, store: Store, ranks: Sequence[int], rank: int, timeout: timedelta,
                   name: str) -> Exchange:  # fmt: skip
    from flambeau.distributed.transport.segment import share
    from flambeau.distributed.transport.shared import SharedExchange, slot_of
    from flambeau.distributed.transport.sockets import SocketExchange

    if len(ranks) == 1:
        return LonelyExchange()

    def check() -> None:
        for lost, reason in mesh.inbox.gone.items():
            if lost in ranks:
                raise DistBackendError(f"Connection closed by peer: rank {lost} {reason}")

    memory = share(store, rank, len(ranks), slot_of(len(ranks)), timeout, check)
    if memory is not None:
        return SharedExchange(memory, mesh.inbox, ranks, rank)
    return SocketExchange(mesh, group_number(name), ranks, rank)


def fake_group(store: Store | None, ranks: Sequence[int], rank: int, timeout: timedelta, name: str,
               desc: str) -> ProcessGroup:  # fmt: skip
    """A group whose other processes are not there."""
    exchange = SilentExchange(rank)
    return ProcessGroup(ranks, rank, "fake", exchange, NoMessages(), store, timeout, name, desc)


def mpi_group(communicator: Any, ranks: Sequence[int], timeout: timedelta, name: str,
              desc: str) -> ProcessGroup:  # fmt: skip
    """A group over an MPI communicator."""
    from flambeau.distributed.transport.mpi import MpiExchange, MpiMessages

    exchange: Exchange = MpiExchange(communicator)
    messages: Messages = MpiMessages(communicator)
    rank = communicator.Get_rank()
    if len(ranks) == 1:
        exchange = LonelyExchange()
    return ProcessGroup(ranks, rank, "mpi", exchange, messages, None, timeout, name, desc)
