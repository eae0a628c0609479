"""`torch.jagged`: rows of one tensor after the other along one ragged dim.

A tensor of shape (B, ..., j, ...) keeps `_values`, in which the ragged dim holds all rows, and
`_offsets` [B + 1]: row i is from `_offsets[i]` to `_offsets[i + 1]`, or `_lengths[i]` long, if
there are holes. `_ragged_idx` is the ragged dim.
"""

from __future__ import annotations

from typing import Any

from flambeau._core.layout import Size, jagged
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nested._shared import COMMON, Form, Nested, instance, nested_in, to_padded
from flambeau.nested._sizes import NestedInt, number_of


class NestedTensor(Nested):
    """A batch of tensors that differ in the size of one dim.

    >>> import flambeau as torch
    >>> rows = [torch.ones(2, 3), torch.zeros(4, 3)]
    >>> x = torch.nested.nested_tensor(rows, layout=torch.jagged)
    >>> (x + 1).sum(dim=1)
    tensor([[4., 4., 4.],
            [4., 4., 4.]])
    """

    _forms: dict[str, Form] = dict(COMMON)

    _values: Any
    _offsets: Any
    _lengths: Any
    _ragged_idx: int
    _bounds: tuple[int, int] | None

    @property
    def layout(self) -> Any:
        return jagged

    def values(self) -> Any:
        """The elements of all rows: one tensor, with the ragged dim as one dim."""
        return self._values

    def offsets(self) -> Any:
        """Where each row begins, and where the last one ends: [B + 1]."""
        return self._offsets

    def lengths(self) -> Any:
        """How long each row is, if there are holes between them; else None."""
        return self._lengths

    @property
    def _max_seqlen(self) -> int:
        return self._seqlens()[1]

    @property
    def _min_seqlen(self) -> int:
        return self._seqlens()[0]

    def _seqlens(self) -> tuple[int, int]:
        if self._bounds is None:
            sizes = self._sizes()
            self._bounds = (min(sizes), max(sizes))
        return self._bounds

    def _sizes(self) -> list[int]:
        """How long each row is."""
        if self._lengths is not None:
            return self._lengths.tolist()
        return self._offsets.diff().tolist()

    def _starts(self) -> list[int]:
        return self._offsets.tolist()[: len(self)]

    def _rows(self) -> list[Any]:
        dim = self._ragged_idx - 1
        pairs = zip(self._starts(), self._sizes(), strict=True)
        return [self._values.narrow(dim, start, size) for start, size in pairs]

    def _pieces(self) -> list[Any]:
        return [self._values]

    def _like(self, pieces: list[Any]) -> Any:
        return None if pieces[0] is None else remade(self, pieces[0])

    def _sample(self) -> Any:
        return self._values

    @property
    def _symbol(self) -> NestedInt:
        return NestedInt(number_of(self._offsets if self._lengths is None else self._lengths))

    @property
    def shape(self) -> Any:
        sizes: list[Any] = list(self._values.shape)
        sizes[self._ragged_idx - 1] = self._symbol
        return tuple.__new__(Size, (len(self), *sizes))

    def size(self, dim: int | None = None) -> Any:
        """Its shape, or the size of one dim: a symbol for the ragged one."""
        return self.shape if dim is None else self.shape[self._dim(dim)]

    def stride(self, dim: int | None = None) -> Any:
        """Steps in elements, of which that along the batch is a symbol."""
        steps: tuple[Any, ...] = self._values.stride()
        ragged = steps[self._ragged_idx - 1]
        steps = (self._symbol * max(ragged, 1), *steps)
        return steps if dim is None else steps[self._dim(dim)]

    def dim(self) -> int:
        """How many dims it has, those of the batch and the ragged one among them."""
        return self._values.ndim + 1

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __iter__(self) -> Any:
        return iter(self._rows())

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether its elements are row-major, without holes between rows."""
        return self._lengths is None and self._values.is_contiguous()

    def is_same_size(self, other: Any) -> bool:
        """Whether both have the same sizes, row by row."""
        return bool(self.shape == other.shape)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        if self.grad_fn is not None:
            history = f", grad_fn={self.grad_fn}"
        else:
            history = ", requires_grad=True" if self.requires_grad else ""
        offsets = self._offsets if self._offsets.device.type != "meta" else "tensor(...)"
        return (f"NestedTensor(size={tuple(self.shape)}, offsets={offsets}{history}, "
                f"contiguous={self.is_contiguous()})")  # fmt: skip

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return format(repr(self), specification)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, (self._values, self._offsets, self._lengths, self._ragged_idx)

    @classmethod
    def _elementwise(cls, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        pattern = next(nested_in((*args, *kwargs.values())))
        if not isinstance(pattern, NestedTensor):
            raise NotImplementedError(cls._refusal(name))
        given = [_operand(pattern, name, value) for value in args]
        named = {key: _operand(pattern, name, value) for key, value in kwargs.items()}
        if kwargs.get("layout") is jagged:
            named.pop("layout")
        if name == "contiguous" and pattern._lengths is not None:
            return packed(pattern)
        result = func(*given, **named)
        if result is pattern._values:
            return pattern
        return remade(pattern, result)

    @classmethod
    def _refusal(cls, name: str) -> str:
        return f"{name}(): not supported for NestedTensor"


def made(values: Any, offsets: Any, lengths: Any = None, ragged: int = 1,
         bounds: tuple[int, int] | None = None) -> NestedTensor:  # fmt: skip
    """A jagged tensor of these parts."""
    found: NestedTensor = instance(NestedTensor)
    found._values = values
    found._offsets = offsets
    found._lengths = lengths
    found._ragged_idx = ragged
    found._bounds = bounds
    return found


def _rebuilt(values: Any, offsets: Any, lengths: Any, ragged: int) -> NestedTensor:
    return made(values, offsets, lengths, ragged)


def remade(pattern: NestedTensor, values: Any, ragged: int | None = None) -> NestedTensor:
    """Other elements in the same rows."""
    place = pattern._ragged_idx if ragged is None else ragged
    return made(values, pattern._offsets, pattern._lengths, place, pattern._bounds)


def of_rows(pattern: NestedTensor, rows: list[Any], ragged: int | None = None) -> NestedTensor:
    """Rows of the same lengths, without holes."""
    place = pattern._ragged_idx if ragged is None else ragged
    offsets = pattern._offsets
    if pattern._lengths is not None:
        offsets = offsets_of(pattern._lengths)
    return made(ops.cat(rows, place - 1), offsets, None, place, pattern._bounds)


def packed(nested: NestedTensor) -> NestedTensor:
    """The same without holes."""
    return nested if nested._lengths is None else of_rows(nested, nested._rows())


def offsets_of(lengths: Any) -> Any:
    """Where rows of these lengths begin, and where the last one ends."""
    return ops.constant_pad_nd(lengths.cumsum(0), [1, 0], 0)


def _operand(pattern: NestedTensor, name: str, value: Any) -> Any:
    """What a value is to the elements: of a nested tensor its values, of an ordinary one what meets
    the rows."""
    if isinstance(value, NestedTensor):
        _check_alike(pattern, name, value)
        return value._values
    if isinstance(value, (tuple, list)):
        return type(value)([_operand(pattern, name, one) for one in value])
    if not isinstance(value, Tensor) or value.ndim == 0:
        return value
    if isinstance(value, Nested) or value.ndim > pattern.dim():
        raise RuntimeError(_unlike(pattern, name, value))
    return _met(pattern, name, value)


def _check_alike(pattern: NestedTensor, name: str, other: NestedTensor) -> None:
    if other is pattern:
        return
    if other._symbol != pattern._symbol or other._ragged_idx != pattern._ragged_idx:
        raise RuntimeError(_unlike(pattern, name, other))


def _unlike(pattern: NestedTensor, name: str, other: Any) -> str:
    name = {"add": "add.Tensor", "mul": "mul.Tensor", "sub": "sub.Tensor", "div": "div.Tensor"}.get(
        name, name
    )
    return (f"cannot call binary pointwise function {name} with inputs of shapes "
            f"{tuple(pattern.shape)} and {tuple(other.shape)}")  # fmt: skip


def _met(pattern: NestedTensor, name: str, value: Any) -> Any:
    """An ordinary tensor [.., B or 1, .., longest or 1, ..] as what the values meet."""
    ragged = pattern._ragged_idx
    full = value.reshape((1,) * (pattern.dim() - value.ndim) + tuple(value.shape))
    batch, length = full.shape[0], full.shape[ragged]
    if length == 1:
        if batch == 1:
            return full[0]
        if batch == len(pattern):
            return full.repeat_interleave(_steps(pattern), 0).movedim(0, ragged).squeeze(ragged - 1)
    if length == pattern._max_seqlen and batch in (1, len(pattern)):
        rows = [full[i if batch > 1 else 0] for i in range(len(pattern))]
        pairs = zip(rows, pattern._sizes(), strict=True)
        if pattern._lengths is None:
            return ops.cat([row.narrow(ragged - 1, 0, size) for row, size in pairs], ragged - 1)
    raise RuntimeError(_unlike(pattern, name, value))


def _steps(pattern: NestedTensor) -> Any:
    """How many places of the values go to each row, holes included."""
    return pattern._offsets.diff()


def padded(self: NestedTensor, padding: float, output_size: Any = None) -> Any:
    """Rows in one ordinary tensor, with `padding` behind shorter ones; longer ones are cut."""
    if self._lengths is not None:
        raise RuntimeError("to_padded_tensor(): not supported for nested tensors with holes")
    sizes: list[Any] = [len(self), *self._values.shape]
    ragged = self._ragged_idx
    sizes[ragged] = self._max_seqlen if output_size is None else output_size[ragged]
    return to_padded(self, padding, sizes)


NestedTensor._forms["to_padded_tensor"] = padded
NestedTensor.__module__ = "torch.nested._internal.nested_tensor"
