"""Rules of shapes, and of parts that are the same in every round; joins."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau.jit.optimise.batching.program import Call, Rule
from flambeau.jit.optimise.batching.rules import (
    RULES,
    moved,
    plain_only,
    rank_of,
    repeated,
    rows_first,
    rule,
    tensor_of,
)
from flambeau.jit.optimise.batching.values import Batched, NotBatchable

# ---- sizes


@rule("size")
def size(call: Call, self: Any, dim: Any = None) -> Any:
    """The size of one round."""
    plain_only(dim)
    sizes = list(tensor_of(self)._data.shape[1:])
    return sizes if dim is None else sizes[dim]


@rule("len")
def length(call: Call, **given: Any) -> Any:
    """How long a list is, or the tensor of one round."""
    (value,) = given.values()
    if not isinstance(value, Batched):
        return len(value)
    return value.tensor._data.shape[1]


# ---- shapes


@rule("unsqueeze")
def unsqueeze(call: Call, self: Any, dim: Any) -> Any:
    """One more dim in each round."""
    plain_only(dim)
    return Batched(call.again(self=tensor_of(self), dim=moved(dim, self.rank + 1)))


@rule("squeeze")
def squeeze(call: Call, self: Any, dim: Any = None) -> Any:
    """Without dims of size 1 of each round."""
    plain_only(dim)
    tensor = tensor_of(self)
    if type(dim) is int:
        return Batched(call.again(self=tensor, dim=moved(dim, self.rank)))
    if dim is None:
        found = [place for place, size in enumerate(tensor._data.shape) if place and size == 1]
    else:
        found = [moved(one, self.rank) for one in dim]
    return Batched(ops.squeeze(tensor, found) if found else tensor)


@rule("transpose")
def transpose(call: Call, self: Any, dim0: Any, dim1: Any) -> Any:
    """Two dims of each round change places."""
    plain_only(dim0, dim1)
    rank = rank_of(self)
    return Batched(call.again(self=tensor_of(self), dim0=moved(dim0, rank),
                              dim1=moved(dim1, rank)))  # fmt: skip


@rule("t")
def t(call: Call, self: Any) -> Any:
    """Rows and columns of each round change places."""
    return self if self.rank < 2 else Batched(ops.transpose(self.tensor, 1, 2))  # noqa: PLR2004


@rule("permute")
def permute(call: Call, self: Any, dims: Any) -> Any:
    """The dims of each round in another order."""
    plain_only(dims)
    return Batched(call.again(self=tensor_of(self), dims=[0, *[d % self.rank + 1 for d in dims]]))


@rule("view", "reshape")
def reshape(call: Call, self: Any, **given: Any) -> Any:
    """Each round in another shape. Whether `view` may do it, the first round has told."""
    shape = given.get("size", given.get("shape"))
    plain_only(shape)
    if shape is None:
        raise NotBatchable("the same bytes as another type")
    return Batched(ops.reshape(tensor_of(self), [call.rounds, *shape]))


@rule("flatten")
def flatten(call: Call, self: Any, start_dim: Any, end_dim: Any) -> Any:
    """Dims of each round become one."""
    plain_only(start_dim, end_dim)
    tensor, rank = tensor_of(self), rank_of(self)
    if not rank:
        return Batched(tensor.unsqueeze(1))  # type: ignore[attr-defined]
    start, end = moved(start_dim, rank), moved(end_dim, rank)
    return Batched(call.again(self=tensor, start_dim=start, end_dim=end))


@rule("expand")
def expand(call: Call, self: Any, size: Any, **given: Any) -> Any:
    """Each round in a larger shape."""
    plain_only(size, *given.values())
    tensor_of(self)
    return Batched(call.again(self=rows_first(self, len(size)), size=[call.rounds, *size]))


# ---- the same part of every round


@rule("slice", "narrow")
def part(call: Call, self: Any, dim: Any, **given: Any) -> Any:
    """The same places of a dim in every round."""
    plain_only(dim, *given.values())
    return Batched(call.again(self=tensor_of(self), dim=moved(dim, self.rank)))


@rule("chunk", "split", "split_with_sizes", "tensor_split", "unbind")
def parts(call: Call, self: Any, dim: Any, **given: Any) -> Any:
    """Each round in parts, or in its elements."""
    plain_only(dim, *given.values())
    found = call.again(self=tensor_of(self), dim=moved(dim, self.rank))
    return [Batched(one) for one in found]


# ---- joins


def _join_rule(new_dims: int) -> Rule:
    def join(call: Call, tensors: Any, dim: Any) -> Any:
        """What each round joins; tensors that are the same for all rounds are repeated."""
        plain_only(dim)
        whole = [v if isinstance(v, Batched) else repeated(v, call.rounds) for v in tensors]
        if len({(v.rank, v.tensor._data.dtype) for v in whole}) != 1:
            raise NotBatchable("tensors of different kinds")
        place = moved(dim, whole[0].rank + new_dims)
        return Batched(call.again(tensors=[value.tensor for value in whole], dim=place))

    return join


RULES["aten::stack"] = _join_rule(1)
RULES["aten::cat"] = _join_rule(0)
