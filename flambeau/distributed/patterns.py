"""Collectives as exchanges of bytes.

Every collective is one exchange or two; sums are made in the order of the ranks, so that all
processes have the same bits, and every run has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flambeau.distributed.group import ProcessGroup
from flambeau.distributed.reduce_op import RedOpType
from flambeau.distributed.reductions import Copies, Fold, nothing
from flambeau.distributed.tensors import as_bytes
from flambeau.distributed.transport.call import MakingStep

SMALL = 1 << 15
"""Up to so many bytes every process reduces everything for itself, which takes one step."""
EMPTY = np.empty(0, np.uint8)


def barrier(group: ProcessGroup, name: str = "barrier") -> None:
    """Nobody leaves before all have come."""
    here = [EMPTY] * group.size()
    group.exchange(name, "", 0, here, Copies(here), same=True)


def broadcast(group: ProcessGroup, data: np.ndarray, root: int, detail: str) -> None:
    """The root's bytes to all."""
    send: list[np.ndarray | None] = [None] * group.size()
    sink = nothing(group.size())
    if group.rank() == root:
        send = [data] * group.size()
    else:
        sink = _only(group.size(), root, data)
    group.exchange("broadcast", detail, data.size, send, sink, same=True)


def all_gather(group: ProcessGroup, data: np.ndarray, outputs: Sequence[np.ndarray], name: str,
               detail: str) -> None:  # fmt: skip
    """Everybody's bytes to all; their sizes may differ, and are known to all."""
    outputs[group.rank()][:] = data
    largest = max(output.size for output in outputs)
    group.exchange(name, detail, largest, [data] * group.size(), Copies(outputs), same=True)


def gather(group: ProcessGroup, data: np.ndarray, outputs: Sequence[np.ndarray] | None, root: int,
           largest: int, name: str, detail: str) -> None:  # fmt: skip
    """Everybody's bytes to the root, which alone has outputs."""
    send: list[np.ndarray | None] = [None] * group.size()
    sink = nothing(group.size())
    if group.rank() == root and outputs is not None:
        outputs[root][:] = data
        sink = Copies(outputs)
    else:
        send[root] = data
    group.exchange(name, detail, largest, send, sink, same=True)


def scatter(group: ProcessGroup, output: np.ndarray, inputs: Sequence[np.ndarray] | None,
            root: int, detail: str) -> None:  # fmt: skip
    """Some of the root's bytes to each."""
    send: Sequence[np.ndarray | None] = [None] * group.size()
    sink = nothing(group.size())
    if group.rank() == root and inputs is not None:
        output[:] = inputs[root]
        send = inputs
    else:
        sink = _only(group.size(), root, output)
    group.exchange("scatter", detail, output.size, send, sink, same=False)


def all_to_all(group: ProcessGroup, outputs: Sequence[np.ndarray], inputs: Sequence[np.ndarray],
               detail: str) -> None:  # fmt: skip
    """From each to each; first all learn how long the longest piece is."""
    mine = max(piece.size for piece in (*inputs, *outputs))
    sizes = [np.zeros(8, np.uint8) for _ in range(group.size())]
    own = as_bytes(np.array([mine]))
    all_gather(group, own, sizes, "all_to_all sizes", detail)
    largest = max(int(size.view(np.int64)[0]) for size in sizes)
    outputs[group.rank()][:] = inputs[group.rank()]
    group.exchange("all_to_all", detail, largest, inputs, Copies(outputs), same=False)


def all_reduce(group: ProcessGroup, data: np.ndarray, operation: RedOpType, detail: str) -> None:
    """Everybody's elements reduced, in place, for all."""
    if data.nbytes <= SMALL or group.size() == 1:
        fold = Fold(operation, data, data, group.rank(), group.size())
        send = [as_bytes(data)] * group.size()
        group.exchange("all_reduce", detail, data.nbytes, send, fold, same=True)
        return
    shares = _shares(data, group.size())
    parts = [as_bytes(share) for share in shares]
    largest = max(part.size for part in parts)
    mine = shares[group.rank()]
    fold = Fold(operation, mine, mine, group.rank(), group.size())
    send = [parts[group.rank()]] * group.size()
    first = group.step("all_reduce", detail, largest, parts, fold, same=False)
    group.exchange_both(
        MakingStep(first.call, parts, fold),
        group.step("all_reduce", detail, largest, send, Copies(parts), same=True),
    )


def reduce(group: ProcessGroup, data: np.ndarray, root: int, operation: RedOpType,
           detail: str) -> None:  # fmt: skip
    """Everybody's elements reduced, in place, for the root."""
    is_root = group.rank() == root
    if data.nbytes <= SMALL or group.size() == 1:
        send: list[np.ndarray | None] = [None] * group.size()
        send[root] = as_bytes(data)
        fold = Fold(operation, data, data, group.rank(), group.size())
        sink = fold if is_root else nothing(group.size())
        group.exchange("reduce", detail, data.nbytes, send, sink, same=True)
        return
    shares = _shares(data, group.size())
    mine = shares[group.rank()] if is_root else np.empty_like(shares[group.rank()])
    reduce_scatter(group, mine, shares, operation, "reduce", detail)
    parts = [as_bytes(share) for share in shares]
    largest = max(part.size for part in parts)
    gather(group, as_bytes(mine), parts if is_root else None, root, largest, "reduce", detail)


def reduce_scatter(group: ProcessGroup, output: np.ndarray, inputs: Sequence[np.ndarray],
                   operation: RedOpType, name: str, detail: str) -> None:  # fmt: skip
    """Share r of everybody's elements reduced for rank r."""
    fold = Fold(operation, inputs[group.rank()], output, group.rank(), group.size())
    largest = max(share.nbytes for share in inputs)
    send = [as_bytes(share) for share in inputs]
    group.exchange(name, detail, largest, send, fold, same=False)


def _only(size: int, root: int, data: np.ndarray) -> Copies:
    arrays: list[np.ndarray | None] = [None] * size
    arrays[root] = data
    return Copies(arrays)


def _shares(data: np.ndarray, size: int) -> list[np.ndarray]:
    """Parts of an array, as equal as they can be."""
    ends = [data.size * part // size for part in range(size + 1)]
    return [data[start:end] for start, end in zip(ends, ends[1:], strict=False)]
