"""Rules of shapes that are asked for, or that differ from what `vmap` does."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau.jit.optimise.batching.program import Call
from flambeau.jit.optimise.batching.rules import moved, plain_only, rank_of, rule, tensor_of
from flambeau.jit.optimise.batching.values import Batched, NotBatchable


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


@rule("squeeze")
def squeeze(call: Call, self: Any) -> Any:
    """Without dims of size 1 of each round."""
    tensor = tensor_of(self)
    found = [place for place, size in enumerate(tensor._data.shape) if place and size == 1]
    return Batched(ops.squeeze(tensor, found) if found else tensor)


@rule("t")
def t(call: Call, self: Any) -> Any:
    """Rows and columns of each round change places."""
    return self if self.rank < 2 else Batched(ops.transpose(self.tensor, 1, 2))  # noqa: PLR2004


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


@rule("split", "tensor_split")
def parts(call: Call, self: Any, dim: Any, **given: Any) -> Any:
    """Each round in parts, whose sizes or number come as other arguments than the rows have."""
    plain_only(dim, *given.values())
    found = call.again(self=tensor_of(self), dim=moved(dim, self.rank))
    return [Batched(one) for one in found]
