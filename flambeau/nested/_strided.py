"""`torch.strided` nested tensors: rows of any sizes with as many dims each.

They have no shape; what has one size in all rows can be asked by `size(dim)`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import flambeau._core.dtype as dt
from flambeau._core.layout import strided
from flambeau._core.tables import entering
from flambeau._ops.table.namespace import ops
from flambeau._tensor.conversion import tensor as new_tensor
from flambeau.nested._shared import (
    COMMON,
    Form,
    Nested,
    instance,
    is_tensor,
    nested_in,
    to_padded,
)

NO_SIZES = "Internal error: NestedTensorImpl doesn't support {}. Please file an issue."


class StridedNestedTensor(Nested):
    """Rows of any sizes; users see the class `Tensor`."""

    _forms: dict[str, Form] = dict(COMMON)
    _parts: list[Any]
    _kind: Any
    """The dtype where there are no rows."""

    @property
    def layout(self) -> Any:
        return strided

    @property
    def dtype(self) -> Any:
        return self._parts[0].dtype if self._parts else self._kind

    def _rows(self) -> list[Any]:
        return list(self._parts)

    def _pieces(self) -> list[Any]:
        return self._parts

    def _like(self, pieces: list[Any]) -> Any:
        return made(pieces, self._kind)

    def _sample(self) -> Any:
        return self._parts[0] if self._parts else ops.empty(0, dtype=self._kind)

    @property
    def shape(self) -> Any:
        raise RuntimeError(NO_SIZES.format("sizes"))

    def size(self, dim: int | None = None) -> Any:
        """The size of a dim in which all rows are alike.

        Raises:
            RuntimeError: rows differ there, or all dims are asked.
        """
        if dim is None:
            raise RuntimeError(NO_SIZES.format("sizes"))
        place = self._dim(dim)
        if not place:
            return len(self._parts)
        sizes = {part.shape[place - 1] for part in self._parts}
        if len(sizes) > 1:
            raise RuntimeError(f"Given dimension {place} is irregular and does not have a size.")
        return sizes.pop()

    def stride(self, dim: int | None = None) -> Any:
        """Refused: rows have steps of their own."""
        raise RuntimeError(NO_SIZES.format("strides"))

    def dim(self) -> int:
        """How many dims it has, that of the batch among them."""
        return self._parts[0].ndim + 1 if self._parts else 1

    def __len__(self) -> int:
        raise RuntimeError(NO_SIZES.format("sizes"))

    def __iter__(self) -> Any:
        raise RuntimeError(NO_SIZES.format("sizes"))

    def values(self) -> Any:
        """All elements in one dim."""
        return ops.cat([part.reshape(-1) for part in self._parts])

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether each row is row-major."""
        return all(part.is_contiguous() for part in self._parts)

    def is_same_size(self, other: Any) -> bool:
        """Whether both have the same sizes, row by row."""
        return _shapes(self) == _shapes(other)

    def _nested_tensor_size(self) -> Any:
        return new_tensor([list(part.shape) for part in self._parts])

    def _nested_tensor_storage_offsets(self) -> Any:
        starts = list(itertools.accumulate([0, *[part.numel() for part in self._parts]]))
        return new_tensor(starts[:-1])

    def _nested_tensor_strides(self) -> Any:
        return new_tensor([list(part.stride()) for part in self._parts])

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        rows = ",\n".join("  " + repr(part.detach().requires_grad_(part.requires_grad and
                                      part.is_leaf)).replace("\n", "\n  ")
                          for part in self._parts)  # fmt: skip
        if self.grad_fn is not None:
            history = f", grad_fn=<{type(self.grad_fn).__name__}>"
        else:
            history = ", requires_grad=True" if self.requires_grad else ""
        return f"nested_tensor([\n{rows}\n]{history})"

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return format(repr(self), specification)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return made, (self._parts, self._kind)

    @classmethod
    def _elementwise(cls, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        pattern = next(nested_in((*args, *kwargs.values())))
        rows = []
        for place in range(len(pattern._rows())):
            given = [_operand(pattern, name, value, place) for value in args]
            named = {k: _operand(pattern, name, value, place) for k, value in kwargs.items()}
            rows.append(func(*given, **named))
        if name.endswith("_") and not name.startswith("__"):
            return pattern
        return made(rows, rows[0].dtype if rows else pattern.dtype)

    @classmethod
    def _refusal(cls, name: str) -> str:
        return (f"Could not run 'aten::{name}' with arguments from the 'NestedTensorCPU' backend: "
                "there is no form for nested tensors of the strided layout")  # fmt: skip


def made(parts: list[Any], kind: Any = None) -> StridedNestedTensor:
    """A nested tensor of these rows."""
    found: StridedNestedTensor = instance(StridedNestedTensor)
    found._parts = list(parts)
    found._kind = dt.default_dtype() if kind is None else kind
    return found


StridedNestedTensor.__name__ = StridedNestedTensor.__qualname__ = "Tensor"
StridedNestedTensor.__module__ = "torch"


def _shapes(nested: Any) -> list[tuple[int, ...]]:
    return [tuple(row.shape) for row in nested._rows()]


def _operand(pattern: Any, name: str, value: Any, place: int) -> Any:
    """What a value is to one row."""
    if isinstance(value, Nested):
        if value is not pattern and _shapes(value) != _shapes(pattern):
            raise RuntimeError(f"{name} does not support broadcasting when given a NestedTensor")
        return value._rows()[place]
    if is_tensor(value) and value.numel() > 1:
        raise RuntimeError("Expected both self and other to be nested, but got a nested self and "
                           "non-nested other")  # fmt: skip
    return value


FORMS = StridedNestedTensor._forms
form = entering(FORMS)
"""Make a function the form of what goes by these names."""


def _row_by_row(self: StridedNestedTensor, run: Callable[[Any], Any]) -> Any:
    rows = [run(part) for part in self._parts]
    return made(rows, rows[0].dtype if rows else self._kind)


def _function(name: str) -> Any:
    from flambeau.nn import functional

    return getattr(functional, name)


@form("to_padded_tensor")
def padded(self: StridedNestedTensor, padding: float, output_size: Any = None) -> Any:
    """Rows in one ordinary tensor, with `padding` where they end; nothing is cut."""
    least = [len(self._parts)]
    least += [max(sizes) for sizes in zip(*_shapes(self), strict=True)]
    sizes = least if output_size is None else list(output_size)
    if len(sizes) != self.dim():
        raise RuntimeError("Length of output_size does not match NestedTensor dims. Broadcasting "
                           "is not supported.")  # fmt: skip
    if any(size < need for size, need in zip(sizes, least, strict=True)):
        raise RuntimeError("Value in output_size is less than NestedTensor padded size. "
                           "Truncation is not supported.")  # fmt: skip
    return to_padded(self, padding, sizes)


@form("unbind")
def unbind(self: StridedNestedTensor, dim: int = 0) -> tuple[Any, ...]:
    """Its rows."""
    if self._dim(dim):
        raise RuntimeError("NestedTensor can only be unbound along dimension 0 got dimension "
                           f"{dim} instead.")  # fmt: skip
    return tuple(self._parts)


@form("__getitem__")
def getitem(self: StridedNestedTensor, index: Any) -> Any:
    """A row, or what an index finds in it."""
    first, *rest = index if isinstance(index, tuple) else (index,)
    if not isinstance(first, int):
        raise NotImplementedError(self._refusal("slice.Tensor"))
    row = select(self, 0, first)
    return row[tuple(rest)] if rest else row


@form("select")
def select(self: StridedNestedTensor, dim: int, index: int) -> Any:
    """A row, or one place along a dim of each row."""
    place = self._dim(dim)
    if place:
        return _row_by_row(self, lambda part: part.select(place - 1, index))
    count = len(self._parts)
    if not -count <= index < count:
        raise IndexError(f"index {index} is out of bounds for dimension 0 with size {count}")
    return self._parts[index]


@form("sum")
def total(self: StridedNestedTensor, dim: Any = None, keepdim: bool = False, *,
          dtype: Any = None) -> Any:  # fmt: skip
    """Sums along the last dim of each row, which stays with size 1."""
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    if dim is None or len(dims) > 1:
        raise RuntimeError("NestedTensor only allows reduction of a single dimension for now.")
    if self._dim(dims[0]) != self.dim() - 1:
        raise RuntimeError("NestedTensor can only be reduced across the last dimension for now got "
                           f"dimension {dims[0]} instead.")  # fmt: skip
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return _row_by_row(self, lambda part: part.sum(-1, keepdim=True, dtype=dtype))


@form("softmax")
def softmax(self: StridedNestedTensor, dim: int, *args: Any, **kwargs: Any) -> Any:
    """Shares along a dim of each row."""
    place = self._dim(dim)
    if not place:
        raise RuntimeError("Cannot apply softmax across nested dimension 0")
    return _row_by_row(self, lambda part: ops.softmax(part, place - 1))


def _layer(name: str) -> None:
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(self, StridedNestedTensor):  # an embedding's table may come first
            ids: Any = args[0]
            rest = args[1:]
            return _row_by_row(ids, lambda part: _function(name)(self, part, *rest, **kwargs))
        return _row_by_row(self, lambda part: _function(name)(part, *args, **kwargs))

    FORMS[name] = run


for _name in ("linear", "embedding"):
    _layer(_name)


@form("layer_norm")
def layer_norm(self: StridedNestedTensor, normalized_shape: Any, weight: Any = None,
               bias: Any = None, eps: float = 1e-5) -> Any:  # fmt: skip
    """Each row normalised over its last dims."""
    if weight is None or bias is None:
        raise ValueError("NestedTensor layer_norm requires weight and bias")
    run = _function("layer_norm")
    return _row_by_row(self, lambda part: run(part, normalized_shape, weight, bias, eps))


@form("matmul", "bmm", "__matmul__", "__rmatmul__")
def matmul(left: Any, right: Any) -> Any:
    """Products row by row."""
    for one, other in ((left, "self"), (right, "other")):
        if not isinstance(one, StridedNestedTensor):
            words = ("a nested self and non-nested other" if other == "other"
                     else "a non-nested self and nested other")  # fmt: skip
            raise RuntimeError(f"Expected both to be nested, but got {words}")
    pairs = zip(left._parts, right._parts, strict=True)
    return made([ops.matmul(a, b) for a, b in pairs], left.dtype)


@form("scaled_dot_product_attention")
def attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: Any = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """Attention of each row to the row of the same number."""
    if attn_mask is not None:
        raise RuntimeError("Scaled_dot_product_attention: Nested tensors for query / key are not "
                           "supported when an explicit attn_mask is set")  # fmt: skip
    attend = _function("scaled_dot_product_attention")
    rows = zip(query._parts, key._parts, value._parts, strict=True)
    found = [attend(q, k, v, None, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
             for q, k, v in rows]  # fmt: skip
    return made(found, query.dtype)


@form("transpose")
def transpose(self: StridedNestedTensor, dim0: int, dim1: int) -> Any:
    """Two dims of each row exchanged."""
    first, second = self._dim(dim0), self._dim(dim1)
    if first == second:
        return self
    if not first or not second:
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    return _row_by_row(self, lambda part: part.transpose(first - 1, second - 1))


@form("view", "reshape")
def reshape(self: StridedNestedTensor, *shape: Any) -> Any:
    """Other dims of each row; -1 keeps the size of the same dim, or is what is left over."""
    sizes = list(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
    if not sizes or sizes[0] not in (len(self._parts), -1):
        raise RuntimeError(f"view: For now nested view cannot change or infer the implicit batch "
                           f"dimension, got {sizes}")  # fmt: skip

    def reshaped(part: Any) -> Any:
        wanted = [part.shape[k] if size == -1 and k < part.ndim else size
                  for k, size in enumerate(sizes[1:])]  # fmt: skip
        return part.reshape(wanted)

    return _row_by_row(self, reshaped)


@form("unsqueeze")
def unsqueeze(self: StridedNestedTensor, dim: int) -> Any:
    """A dim of size 1 more in each row."""
    place = dim % (self.dim() + 1)
    if not place:
        raise RuntimeError("unsqueeze(): For nested tensors, unsqueeze is not supported on the "
                           "batch dimension")  # fmt: skip
    return _row_by_row(self, lambda part: part.unsqueeze(place - 1))


@form("squeeze")
def squeeze(self: StridedNestedTensor, dim: int) -> Any:
    """Each row without a dim of size 1."""
    place = self._dim(dim)
    return _row_by_row(self, lambda part: part.squeeze(place - 1))


@form("chunk")
def chunk(self: StridedNestedTensor, parts: int, dim: int = 0) -> tuple[Any, ...]:
    """Parts of each row along its last dim."""
    if self._dim(dim) != self.dim() - 1:
        raise RuntimeError("Chunk for nested tensors is currently only supported for the last "
                           "dimension.")  # fmt: skip
    split = [part.chunk(parts, -1) for part in self._parts]
    return tuple(made(list(rows), self._kind) for rows in zip(*split, strict=True))


@form("cat", "concat")
def cat(tensors: Any, dim: int = 0) -> Any:
    """Rows one behind the other, or the batches."""
    place = tensors[0]._dim(dim)
    if not place:
        return made([row for one in tensors for row in one._parts], tensors[0]._kind)
    rows = zip(*[one._parts for one in tensors], strict=True)
    return made([ops.cat(list(row), place - 1) for row in rows], tensors[0]._kind)


@form("to")
def to(self: StridedNestedTensor, *args: Any, **kwargs: Any) -> Any:
    """Another dtype or device."""
    parts = [part.to(*args, **kwargs) for part in self._parts]
    if all(new is old for new, old in zip(parts, self._parts, strict=True)):
        return self
    return made(parts, parts[0].dtype)


@form("equal")
def equal(self: Any, other: Any) -> bool:
    """Whether both have the same rows with the same elements."""
    if not (isinstance(self, Nested) and isinstance(other, Nested)):
        return False
    rows, others = self._rows(), other._rows()
    return len(rows) == len(others) and all(map(ops.equal, rows, others))
