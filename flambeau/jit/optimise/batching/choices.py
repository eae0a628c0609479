"""Rules of parts that each round takes by its own number or its own index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.jit.optimise.batching import derived
from flambeau.jit.optimise.batching.likeness import same_form
from flambeau.jit.optimise.batching.program import Call
from flambeau.jit.optimise.batching.rules import (
    moved,
    plain_only,
    rank_of,
    rows_first,
    rule,
    tensor_of,
    whole,
)
from flambeau.jit.optimise.batching.values import (
    Batched,
    Counted,
    NotBatchable,
    Rounds,
    depends_on_round,
)


class OutOfRange(IndexError):
    """A round takes what is not there; the loop says which."""


@rule("select")
def select(call: Call, self: Any, dim: Any, index: Any) -> Any:
    """`x[i]`: the batch is `x` itself where the index counts up."""
    plain_only(dim)
    if not isinstance(index, Rounds):
        return derived.of_row("select", call.rounds, self, dim, index)
    if isinstance(self, Batched):
        return _select_each(self, moved(dim, self.rank), index)
    start, size = index.start, self.size(dim)
    if start is None:
        return Batched(_first(_chosen(self, dim, index.numbers), dim))
    if start + call.rounds > size:
        raise OutOfRange
    taken = self if call.rounds == size else ops.narrow(self, dim, start, call.rounds)
    return Batched(_first(taken, dim))


def _chosen(x: Tensor, dim: int, numbers: np.ndarray) -> Tensor:
    size = x._data.shape[dim]
    if numbers.min() < -size or numbers.max() >= size:
        raise OutOfRange
    places = wrap(np.where(numbers < 0, numbers + size, numbers))
    return ops.index_select(x, dim, places)  # type: ignore[no-any-return]


def _first(tensor: Tensor, dim: int) -> Tensor:
    """A tensor whose rounds are in a dim, with that in front."""
    in_front = dim in (0, -tensor._data.ndim)
    return tensor if in_front else ops.movedim(tensor, dim, 0)  # type: ignore[no-any-return]


def _select_each(x: Batched, dim: int, index: Rounds) -> Batched:
    """The element of each round's own tensor."""
    tensor = x.tensor.movedim(dim, 1)  # type: ignore[attr-defined]
    return Batched(ops.index(tensor, [every(len(index.numbers)), wrap(index.numbers)]))


def every(rounds: int) -> Tensor:
    """The numbers of all rounds as a tensor."""
    return wrap(np.arange(rounds))


@rule("__getitem__")
def get_item(call: Call, **given: Any) -> Any:
    """An element of a list; for one that is the same in all rounds, their stack."""
    items, index = given.values()
    if not isinstance(index, Rounds):
        plain_only(index)
        return call.plain(items, index)
    if depends_on_round(items) or not isinstance(items, (list, tuple)) or not items:
        raise NotBatchable("a list that depends on the round")
    if all(type(item) is int for item in items):
        return _numbers_at(items, index)
    if not all(isinstance(item, Tensor) for item in items) or not same_form(items):
        raise NotBatchable("a list of other things than tensors of one form")
    whole = _unbound(items, index, call.rounds)
    if whole is not None:
        return Batched(whole)
    if isinstance(index, Counted) and call.rounds > len(items):
        raise OutOfRange
    return Batched(ops.stack([items[k] for k in index.numbers.tolist()]))


def _numbers_at(items: Sequence[int], index: Rounds) -> Rounds:
    numbers = np.asarray(items)
    if numbers.dtype != np.int64:
        raise NotBatchable("integers that may grow too large for an element")
    return Rounds(numbers[index.numbers])


def _unbound(items: Sequence[Any], index: Rounds, rounds: int) -> Tensor | None:
    """The tensor that `unbind(0)` took apart; not where gradients have to reach the items."""
    first = items[0]
    base = first._base
    if base is None or index.start != 0 or rounds != len(items) or base.dim() == 0:
        return None
    if modes.grad.enabled and first.requires_grad:
        return None
    data = base._data
    if data.shape != (rounds, *first._data.shape) or data.strides[1:] != first._data.strides:
        return None
    start, step = _address(data), data.strides[0]
    same = all(item._base is base and _address(item._data) == start + k * step
               for k, item in enumerate(items))  # fmt: skip
    return base if same and data.dtype == first._data.dtype else None


def _address(data: np.ndarray) -> int:
    return int(data.__array_interface__["data"][0])


@rule("index")
def index(call: Call, self: Any, indices: Any) -> Any:
    """`x[i][idx]`: the round's own number is one more index in front."""
    if any(rank_of(v) < 0 or whole(v)._data.dtype.kind != "i" for v in indices):
        raise NotBatchable("masks and whole dims among the indices")
    if not isinstance(self, Batched):
        rank = max(map(rank_of, indices))
        return Batched(call.again(indices=[rows_first(v, rank) for v in indices]))
    if self.rank == rank_of(indices[0]) == len(indices) == 1:
        places = whole(indices[0])
        if _counts_from_front(places):
            return Batched(ops.gather(self.tensor, 1, places))
    return derived.of_row("index", call.rounds, self, indices)


def _counts_from_front(index: Tensor) -> bool:
    """Whether an index of all rounds is one that `gather` takes, which is quicker."""
    data = index._data
    return data.ndim == 2 and data.dtype == np.int64 and bool(data.size and data.min() >= 0)  # noqa: PLR2004


@rule("gather")
def gather(call: Call, self: Any, dim: Any, index: Any, **given: Any) -> Any:
    """Along a dim, each round by its own index."""
    if given.get("sparse_grad"):
        raise NotBatchable("a sparse gradient, which is that of a round")
    if rank_of(self) != rank_of(index):
        raise NotBatchable("an index of other dims")
    return derived.of_row("gather", call.rounds, self, dim, index, False)


@rule("index_select")
def index_select(call: Call, self: Any, dim: Any, index: Any) -> Any:
    """The same parts of every round, or parts of one tensor by each round's index."""
    plain_only(dim)
    if not isinstance(index, Batched):
        return Batched(call.again(self=tensor_of(self), dim=moved(dim, self.rank)))
    if isinstance(self, Batched) or index.rank != 1 or dim not in (0, -self.dim()):
        raise NotBatchable("an index of each round")
    chosen = call.again(index=index.tensor.flatten())  # type: ignore[attr-defined]
    return Batched(chosen.unflatten(0, index.tensor._data.shape))


@rule("embedding")
def embedding(call: Call, weight: Any, indices: Any, **given: Any) -> Any:
    """Rows of a table. Gradients by how often each row is taken count per call."""
    plain_only(weight, *given.values())
    if given["scale_grad_by_freq"] or given["sparse"]:
        raise NotBatchable("gradients that count rows")
    return Batched(call.again(indices=tensor_of(indices)))
