"""`torch.nested`: batches of tensors of different sizes, without padding.

Two layouts: `torch.jagged`, whose rows differ in one dim and lie in one tensor, and
`torch.strided`, whose rows may differ in any. Gradients flow through both.
"""

from __future__ import annotations

from typing import Any

import flambeau._core.dtype as dt
from flambeau._core.device import refuse_pinned
from flambeau._core.layout import jagged, strided
from flambeau._ops.table.namespace import ops
from flambeau._tensor.conversion import tensor as new_tensor
from flambeau.nested import _jagged_forms, _strided  # noqa: F401  # the forms of functions
from flambeau.nested._jagged import NestedTensor, made, offsets_of
from flambeau.nested._shared import Nested, is_tensor

__all__ = [
    "as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged",
    "to_padded_tensor",
]  # fmt: skip

ONLY_LISTS = "Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor"
NO_TENSORS = (
    "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors "
)


def nested_tensor(
    tensor_list: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """A nested tensor with the numbers of a list, and no history: a leaf.

    Args:
        tensor_list: tensors, or lists of numbers, with as many dims each.
        layout: `torch.strided` (None) or `torch.jagged`, whose rows differ in one dim.

    Raises:
        RuntimeError: rows that a nested tensor of the layout cannot have.

    >>> import flambeau as torch
    >>> x = torch.nested.nested_tensor([[1.0, 2.0], [3.0]])
    >>> torch.nested.to_padded_tensor(x, 0)
    tensor([[1., 2.],
            [3., 0.]])
    """
    if pin_memory is not False:
        refuse_pinned("nested_tensor", pin_memory)
    layout = strided if layout is None else layout
    if layout not in (strided, jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    if layout is strided and not isinstance(tensor_list, list):
        raise TypeError(ONLY_LISTS)
    rows: list[Any] = [one.detach() if is_tensor(one) else new_tensor(one) for one in tensor_list]
    if layout is jagged:
        rows = [row if dtype is None else row.to(dtype=dtype) for row in rows]
        found: Any = _jagged_of(rows, device)
    else:
        kind = dtype or (rows[0].dtype if rows else dt.default_dtype())
        _check_dims(rows)
        rows = [row.to(device=device, dtype=kind, copy=True).contiguous() for row in rows]
        found = _strided.made(rows, kind)
    return found.requires_grad_(True) if requires_grad else found


def _check_dims(rows: list[Any]) -> None:
    for place, row in enumerate(rows):
        if row.ndim != rows[0].ndim:
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{row.ndim} for Tensor at index {place} and dimension {rows[0].ndim} for Tensor "
                "at index 0."
            )


def _jagged_of(rows: list[Any], device: Any = None) -> NestedTensor:
    """Rows that differ in one dim, joined along it."""
    if not rows:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    for what, facts in (("dtype", [row.dtype for row in rows]),
                        ("device", [row.device for row in rows]),
                        ("dim", [row.ndim for row in rows])):  # fmt: skip
        if len(set(facts)) > 1:
            raise RuntimeError("When constructing a nested tensor, all tensors in list must have "
                               f"the same {what}")  # fmt: skip
    if not rows[0].ndim:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    uneven = [d for d, sizes in enumerate(zip(*[row.shape for row in rows], strict=True))
              if len(set(sizes)) > 1] or [0]  # fmt: skip
    if len(uneven) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note "
            "that the jagged layout only allows for a single ragged dimension. For example: (B, *, "
            "D_0, D_1, ..., D_N), with ragged * dim."
        )
    dim = uneven[0]
    values = ops.cat(rows, dim)
    sizes = [row.shape[dim] for row in rows]
    values = values if device is None else values.to(device)
    offsets = offsets_of(new_tensor(sizes, device=values.device))
    return made(values, offsets, None, dim + 1, (min(sizes), max(sizes)))


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> Any:
    """A nested tensor of tensors, through which gradients reach them.

    Args:
        ts: a list of tensors, or a tensor [B, ..], whose rows they are.
        layout: `torch.strided` (None) or `torch.jagged`.

    >>> import flambeau as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> y = torch.nested.as_nested_tensor([x, torch.ones(3)], layout=torch.jagged)
    >>> (y * 2).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """
    layout = strided if layout is None else layout
    if isinstance(ts, Nested) and ts.layout is layout:
        return ts.to(device=device, dtype=dtype) if device or dtype else ts
    is_tensors = isinstance(ts, (list, tuple)) and all(is_tensor(one) for one in ts)
    if not (is_tensor(ts) or is_tensors):
        raise TypeError(NO_TENSORS)
    if layout not in (strided, jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    if is_tensor(ts) and ts.dim() < 2:  # noqa: PLR2004
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    rows = list(ts.unbind()) if is_tensor(ts) else list(ts)
    if device is not None or dtype is not None:
        rows = [row.to(device=device, dtype=dtype) for row in rows]
    if layout is jagged:
        return _jagged_of(rows)
    _check_dims(rows)
    return _strided.made([row.clone() for row in rows], rows[0].dtype if rows else None)


def nested_tensor_from_jagged(
    values: Any, offsets: Any = None, lengths: Any = None,
    jagged_dim: int | None = None, min_seqlen: int | None = None, max_seqlen: int | None = None,
) -> NestedTensor:  # fmt: skip
    """A jagged tensor over the elements of `values`.

    Args:
        offsets: [B + 1]: where each row begins, and where the last one ends.
        lengths: [B]: how long each row is; with `offsets`, there may be holes between rows.
        jagged_dim: the ragged dim of the result, 1 by default.
        min_seqlen, max_seqlen: the shortest and the longest row, if they are known.

    >>> import flambeau as torch
    >>> offsets = torch.tensor([0, 1, 3])
    >>> x = torch.nested.nested_tensor_from_jagged(torch.arange(3), offsets)
    >>> [row.tolist() for row in x.unbind()]
    [[0], [1, 2]]
    """
    if offsets is None and lengths is None:
        raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is "
                           "required.")  # fmt: skip
    if not is_tensor(values):
        raise TypeError("_nested_view_from_jagged(): argument 'input' (position 1) must be Tensor, "
                        f"not {type(values).__name__}")  # fmt: skip
    if offsets is None:
        offsets, lengths = offsets_of(lengths), None
    bounds = None
    if min_seqlen is not None and max_seqlen is not None:
        bounds = (int(min_seqlen), int(max_seqlen))
    return made(values.view_as(values), offsets, lengths, jagged_dim or 1, bounds)


def to_padded_tensor(input: Any, padding: float, output_size: Any = None, out: Any = None) -> Any:
    """The rows of a nested tensor in an ordinary one, with `padding` where they end.

    Args:
        output_size: its sizes; those of the largest row by default.

    >>> import flambeau as torch
    >>> x = torch.nested.nested_tensor([torch.ones(1, 2), torch.ones(2, 2)])
    >>> torch.nested.to_padded_tensor(x, 0.0).shape
    torch.Size([2, 2, 2])
    """
    if not isinstance(input, Nested):
        raise RuntimeError("to_padded_tensor is only for nested tensors")
    found = type(input)._forms["to_padded_tensor"](input, padding, output_size)
    return found if out is None else out.copy_(found)


def narrow(tensor: Any, dim: int, start: Any, length: Any, layout: Any = strided) -> Any:
    """Ranges of the rows of an ordinary tensor [B, S, ..], each with its own start and length.

    Args:
        start, length: numbers, or tensors [B].
        layout: `torch.jagged`, whose result is a view; for `torch.strided`, both are numbers.

    >>> import flambeau as torch
    >>> x = torch.arange(6).reshape(2, 3)
    >>> y = torch.nested.narrow(x, 1, 0, torch.tensor([1, 2]), layout=torch.jagged)
    >>> [row.tolist() for row in y.unbind()]
    [[0], [3, 4]]
    """
    numbers = isinstance(start, int) and isinstance(length, int)
    if layout is strided:
        if not numbers:
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return as_nested_tensor(tensor).narrow(dim, start, length)
    if layout is not jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested narrow: {layout}")
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    count, size = tensor.shape[:2]
    starts, lengths = (
        ops.full((count,), one, dtype=dt.int64) if isinstance(one, int) else one.to(dt.int64)
        for one in (start, length)
    )
    begins = ops.arange(count) * size + starts
    values = tensor.reshape(count * size, *tensor.shape[2:])
    offsets = ops.cat([begins, (begins[-1] + lengths[-1]).reshape(1)])
    whole = bool((begins + lengths == offsets[1:]).all()) and not int(begins[0])
    return made(values.view_as(values), offsets, None if whole else lengths)


def masked_select(tensor: Any, mask: Any) -> NestedTensor:
    """The elements of each row that a mask chooses: a jagged tensor (B, j).

    >>> import flambeau as torch
    >>> x = torch.tensor([[1, 2], [3, 4]])
    >>> y = torch.nested.masked_select(x, x > 1)
    >>> [row.tolist() for row in y.unbind()]
    [[2], [3, 4]]
    """
    if tensor.layout is not strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor, given "
                           f"{tensor.layout}")  # fmt: skip
    values = tensor.masked_select(mask)
    lengths = mask.expand(tensor.shape).sum(dim=tuple(range(1, tensor.ndim)))
    return made(values, offsets_of(lengths))
