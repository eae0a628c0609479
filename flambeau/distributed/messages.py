"""Tensors from one process to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.distributed.group import ProcessGroup
from flambeau.distributed.tensors import Target, as_bytes, check_tensor, elements
from flambeau.distributed.work import Work
from flambeau.distributed.world import (
    get_global_rank,
    get_group_rank,
    is_outside,
    the_group,
    warn_outside,
)

TO_ITSELF = (
    "Invalid destination rank: destination rank should not be the same as the rank of the current "
    "process."
)
FROM_ITSELF = (
    "Invalid source rank: source rank should not be the same as the rank of the current process."
)


def isend(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0,
          group_dst: int | None = None) -> Work | None:  # fmt: skip
    """Send a tensor to a rank; the Work is done when the tensor may be written again."""
    check_tensor(tensor, "tensor")
    if is_outside(group):
        return warn_outside("isend")
    team = the_group(group)
    rank = _rank(team, dst, group_dst)
    if rank == team.rank():
        raise ValueError(TO_ITSELF)
    work = Work([tensor])
    try:
        going = team._messages.send(rank, tag, as_bytes(elements(tensor)), team.deadline())
        if going is not None:
            return team.send_work(going, [tensor])
        work._finish()
    except RuntimeError as error:  # raised by `wait`
        work._finish(error)
    return work


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0,
          group_src: int | None = None) -> Work | None:  # fmt: skip
    """Receive a tensor from a rank, or from any; it is there after `wait`."""
    check_tensor(tensor, "tensor")
    if is_outside(group):
        return warn_outside("irecv")
    team = the_group(group)
    rank = None if src is None and group_src is None else _rank(team, src, group_src)
    if rank == team.rank():
        raise ValueError(FROM_ITSELF)
    target = Target(tensor)
    coming = team._messages.receive(rank, tag, target.bytes)
    return team.receive_work(coming, target.write, [tensor])


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0,
         group_dst: int | None = None) -> None:  # fmt: skip
    """Send a tensor to a rank."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0,
         group_src: int | None = None) -> int:  # fmt: skip
    """Receive a tensor from a rank, or from any: the rank of the sender."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return get_global_rank(the_group(group), work.source_rank())


class P2POp:
    """A send or receive of `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`. peer: the other rank, of the world; group_peer: of the group.
    """

    __module__ = "torch.distributed"

    def __init__(
        self, op: Callable[..., Any], tensor: Tensor, peer: int | None = None, group: Any = None,
        tag: int = 0, group_peer: int | None = None,
    ) -> None:  # fmt: skip
        _check_op(op)
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        self.group_peer = _rank(the_group(group), peer, group_peer)
        self.peer = get_global_rank(the_group(group), self.group_peer)


def _check_op(op: Any) -> None:
    if op not in (isend, irecv):
        raise ValueError(
            "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
            "``torch.distributed.irecv``."
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin several sends and receives; the receives begin first.

    Raises:
        ValueError: something in the list is no P2POp.
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(x, P2POp) for x in p2p_op_list):
        raise ValueError(
            "Invalid ``p2p_op_list``. Each op is expected to to be of type "
            "``torch.distributed.P2POp``."
        )
    works: list[Work | None] = [None] * len(p2p_op_list)
    for kind in (irecv, isend):
        for index, each in enumerate(p2p_op_list):
            if each.op is kind:
                works[index] = kind(each.tensor, each.peer, each.group, each.tag)
    return [work for work in works if work is not None]


def _rank(group: ProcessGroup, world_rank: int | None, group_rank: int | None) -> int:
    if group_rank is not None:
        if world_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        found = group_rank
    elif world_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    else:
        found = get_group_rank(group, world_rank)
    if not 0 <= found < group.size():
        raise ValueError(f"rank {found} is not one of the {group.size()} of the group")
    return found
