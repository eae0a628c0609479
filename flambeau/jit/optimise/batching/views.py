"""Rules of parts, shapes, joins, and of lists and tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._ops.namespace import ops
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.jit.optimise.batching.program import (
    Batched,
    Counted,
    NotBatchable,
    Rounds,
    Rule,
    depends_on_round,
)
from flambeau.jit.optimise.batching.rules import (
    RULES,
    moved,
    plain_only,
    repeated,
    rows_first,
    rule,
    tensor_of,
)

# ---- parts


@rule("select")
def select(plain: Rule, rounds: int, x: Any, dim: Any, index: Any) -> Any:
    """`x[i]`: the batch is `x` itself where the index counts up."""
    plain_only(dim)
    if not isinstance(index, Rounds):
        plain_only(index)
        return Batched(ops.select(tensor_of(x), moved(dim, x.rank), index))
    if isinstance(x, Batched):
        return _select_each(x, moved(dim, x.rank), index)
    start = index.start
    size = x.size(dim)
    if start is None:
        numbers = index.numbers
        if numbers.min() < -size or numbers.max() >= size:
            raise IndexError("the loop says which index is out of range")
        chosen = ops.index_select(x, dim, wrap(np.where(numbers < 0, numbers + size, numbers)))
    elif start + rounds > size:
        raise IndexError("the loop says which index is out of range")
    else:
        chosen = x if rounds == size else ops.narrow(x, dim, start, rounds)
    return Batched(chosen if dim in (0, -chosen.dim()) else ops.movedim(chosen, dim, 0))


def _select_each(x: Batched, dim: int, index: Rounds) -> Batched:
    """The element of each round's own tensor."""
    tensor = x.tensor.movedim(dim, 1)  # type: ignore[attr-defined]
    return Batched(ops.index(tensor, [every(len(index.numbers)), wrap(index.numbers)]))


def every(rounds: int) -> Tensor:
    """The numbers of all rounds as a tensor."""
    return wrap(np.arange(rounds))


@rule("__getitem__")
def get_item(plain: Rule, rounds: int, items: Any, index: Any) -> Any:
    """An element of a list; for one that is the same in all rounds, their stack."""
    if not isinstance(index, Rounds):
        return plain(items, index)
    if depends_on_round(items) or not items:
        raise NotBatchable("a list that depends on the round")
    if isinstance(items[0], int):
        return Rounds(np.asarray(items)[index.numbers])
    if not isinstance(items[0], Tensor):
        raise NotBatchable("a list of other things than tensors")
    whole = _unbound(items, index, rounds)
    if whole is not None:
        return Batched(whole)
    numbers = index.numbers.tolist()
    if isinstance(index, Counted) and rounds > len(items):
        raise IndexError("the loop says which index is out of range")
    return Batched(ops.stack([items[k] for k in numbers]))


def _unbound(items: Sequence[Any], index: Rounds, rounds: int) -> Tensor | None:
    """The tensor that `unbind(0)` took apart."""
    base = items[0]._base
    if base is None or index.start != 0 or rounds != len(items) or base.dim() == 0:
        return None
    data = base._data
    if data.ndim != items[0]._data.ndim + 1 or len(data) != rounds:
        return None
    same = all(item._base is base and item._data.strides == data.strides[1:]
               and item._data.shape == data.shape[1:]
               and item._data.__array_interface__["data"][0]
               == data.__array_interface__["data"][0] + k * data.strides[0]
               for k, item in enumerate(items))  # fmt: skip
    return base if same else None


@rule("slice")
def slice_(plain: Rule, rounds: int, x: Any, dim: Any, start: Any, end: Any, step: Any) -> Any:
    """The same part of every round."""
    plain_only(dim, start, end, step)
    return Batched(plain(tensor_of(x), moved(dim, x.rank), start, end, step))


@rule("narrow")
def narrow(plain: Rule, rounds: int, x: Any, dim: Any, start: Any, length: Any) -> Any:
    """The same part of every round."""
    plain_only(dim, start, length)
    return Batched(plain(tensor_of(x), moved(dim, x.rank), start, length))


@rule("index")
def index(plain: Rule, rounds: int, x: Any, indices: Any) -> Any:
    """`x[i][idx]`: the round's own number is one more index in front."""
    tensors = [v.tensor if isinstance(v, Batched) else v for v in indices]
    if any(t is None or t._data.dtype.kind != "i" for t in tensors):
        raise NotBatchable("masks and whole dims among the indices")
    ranks = [v.rank if isinstance(v, Batched) else v.dim() for v in indices]
    rank = max(ranks)
    lined_up = [rows_first(v, rank) if isinstance(v, Batched) else v for v in indices]
    if not isinstance(x, Batched):
        return Batched(plain(x, lined_up))
    if x.rank == rank == len(indices) == 1 and isinstance(indices[0], Batched):
        return Batched(ops.gather(x.tensor, 1, lined_up[0]))  # refuses negative ones
    own = every(rounds).reshape(rounds, *[1] * rank)  # type: ignore[attr-defined]
    return Batched(plain(x.tensor, [own, *lined_up]))


@rule("gather")
def gather(plain: Rule, rounds: int, x: Any, dim: Any, index: Any, *rest: Any) -> Any:
    """Along a dim, each round by its own index."""
    plain_only(dim, *rest)
    whole = [v if isinstance(v, Batched) else repeated(v, rounds) for v in (x, index)]
    if whole[0].rank != whole[1].rank or not whole[0].rank:
        raise NotBatchable("an index of other dims")
    return Batched(plain(whole[0].tensor, moved(dim, whole[0].rank), whole[1].tensor, *rest))


@rule("index_select")
def index_select(plain: Rule, rounds: int, x: Any, dim: Any, index: Any) -> Any:
    """The same parts of every round, or parts of one tensor by each round's index."""
    plain_only(dim)
    if isinstance(x, Batched) and not isinstance(index, Batched):
        return Batched(plain(x.tensor, moved(dim, x.rank), index))
    if isinstance(x, Batched) or index.rank != 1 or dim not in (0, -x.dim()):
        raise NotBatchable("index_select")
    return Batched(ops.index(x, [index.tensor]))


@rule("embedding")
def embedding(plain: Rule, rounds: int, weight: Any, indices: Any, *rest: Any) -> Any:
    """Rows of a table."""
    plain_only(weight, *rest)
    return Batched(plain(weight, tensor_of(indices), *rest))


# ---- shapes


@rule("size")
def size(plain: Rule, rounds: int, x: Any, *dim: Any) -> Any:
    """The size of one round."""
    sizes = list(tensor_of(x)._data.shape[1:])
    return sizes[dim[0]] if dim else sizes


@rule("len")
def length(plain: Rule, rounds: int, x: Any) -> Any:
    """How long a list is, or the tensor of one round."""
    if not isinstance(x, Batched):
        return len(x)
    if not x.rank:
        raise NotBatchable("the length of a number")
    return x.tensor._data.shape[1]


@rule("dim", "numel", "prim::dtype", "prim::device", "is_floating_point")
def question(plain: Rule, rounds: int, x: Any) -> Any:
    """What is the same for all rounds: that of the first."""
    return plain(tensor_of(x)[0])  # type: ignore[index]


@rule("unsqueeze")
def unsqueeze(plain: Rule, rounds: int, x: Any, dim: Any) -> Any:
    """One more dim in each round."""
    plain_only(dim)
    return Batched(plain(tensor_of(x), moved(dim, x.rank + 1)))


@rule("squeeze")
def squeeze(plain: Rule, rounds: int, x: Any, *dim: Any) -> Any:
    """One dim less in each round."""
    if not dim or type(dim[0]) is not int:
        raise NotBatchable("dims that are found by their sizes")
    return Batched(plain(tensor_of(x), moved(dim[0], x.rank)))


@rule("transpose")
def transpose(plain: Rule, rounds: int, x: Any, first: Any, second: Any) -> Any:
    """Two dims of each round change places."""
    plain_only(first, second)
    return Batched(plain(tensor_of(x), moved(first, x.rank), moved(second, x.rank)))


@rule("t")
def t(plain: Rule, rounds: int, x: Any) -> Any:
    """Rows and columns of each round change places."""
    if tensor_of(x) is None or x.rank > 2:
        raise NotBatchable("t of more than two dims")
    return x if x.rank < 2 else Batched(ops.transpose(x.tensor, 1, 2))


@rule("permute")
def permute(plain: Rule, rounds: int, x: Any, dims: Any) -> Any:
    """The dims of each round in another order."""
    plain_only(dims)
    return Batched(plain(tensor_of(x), [0, *[d % x.rank + 1 for d in dims]]))


@rule("view", "reshape")
def reshape(plain: Rule, rounds: int, x: Any, shape: Any) -> Any:
    """Each round in another shape."""
    plain_only(shape)
    return Batched(ops.reshape(tensor_of(x), [rounds, *shape]))


@rule("flatten")
def flatten(plain: Rule, rounds: int, x: Any, start: Any, end: Any) -> Any:
    """Dims of each round become one."""
    plain_only(start, end)
    if not x.rank:
        return Batched(tensor_of(x).unsqueeze(1))  # type: ignore[attr-defined]
    return Batched(plain(tensor_of(x), moved(start, x.rank), moved(end, x.rank)))


@rule("expand")
def expand(plain: Rule, rounds: int, x: Any, shape: Any, *rest: Any) -> Any:
    """Each round in a larger shape."""
    plain_only(shape, *rest)
    return Batched(plain(rows_first(x, len(shape)), [rounds, *shape], *rest))


@rule("chunk")
def chunk(plain: Rule, rounds: int, x: Any, chunks: Any, dim: Any) -> Any:
    """Each round in parts."""
    plain_only(chunks, dim)
    return [Batched(part) for part in plain(tensor_of(x), chunks, moved(dim, x.rank))]


@rule("split", "split_with_sizes", "tensor_split")
def split(plain: Rule, rounds: int, x: Any, sizes: Any, dim: Any) -> Any:
    """Each round in parts."""
    plain_only(sizes, dim)
    return [Batched(part) for part in plain(tensor_of(x), sizes, moved(dim, x.rank))]


@rule("unbind")
def unbind(plain: Rule, rounds: int, x: Any, dim: Any) -> Any:
    """Each round in its elements."""
    return [Batched(part) for part in plain(tensor_of(x), moved(dim, x.rank))]


def _join_rule(new_dims: int) -> Rule:
    def join(plain: Rule, rounds: int, tensors: Any, dim: Any) -> Any:
        """What each round joins; tensors that are the same for all rounds are repeated."""
        plain_only(dim)
        whole = [v if isinstance(v, Batched) else repeated(v, rounds) for v in tensors]
        if len({(v.rank, v.tensor._data.dtype) for v in whole}) != 1:
            raise NotBatchable("tensors of different kinds")
        place = moved(dim, whole[0].rank + new_dims)
        return Batched(plain([value.tensor for value in whole], place))

    return join


RULES["aten::stack"] = _join_rule(1)
RULES["aten::cat"] = _join_rule(0)


# ---- lists and tuples


@rule("prim::ListConstruct", "prim::TupleConstruct", "prim::ListUnpack", "prim::TupleUnpack",
      "prim::TupleIndex", "prim::unchecked_cast")  # fmt: skip
def structure(plain: Rule, rounds: int, *values: Any) -> Any:
    """Putting together and taking apart is the same for all."""
    return plain(*values)
