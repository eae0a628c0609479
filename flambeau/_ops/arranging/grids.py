"""Several tensors side by side: broadcasting, grids, products, and at least so many dims."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import chain, combinations_with_replacement
from itertools import combinations as combinations_of
from math import comb
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.doc_text import with_example
from flambeau._core.layout import Size
from flambeau._core.promotion import promote_types
from flambeau._ops.table.binder import explained
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, internal
from flambeau._ops.table.pointwise import broadcast_shape
from flambeau._tensor.tensor import Tensor, on_device_of, wrap


def tensors_of(given: tuple[Any, ...]) -> list[Any]:
    """`f(a, b)` and `f([a, b])` alike."""
    if len(given) == 1 and isinstance(given[0], (list, tuple)):
        return list(given[0])
    return list(given)


# ---- broadcasting


@composite("broadcast_tensors(Tensor[] tensors) -> Tensor[]", may_give_input=True, method=False)
def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """The tensors expanded to their common shape.

    >>> import flambeau as torch
    >>> a, b = torch.broadcast_tensors(torch.ones(3, 1), torch.ones(4))
    >>> a.shape, b.shape
    (torch.Size([3, 4]), torch.Size([3, 4]))
    """
    found = tensors_of(tensors)
    for position, tensor in enumerate(found):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"expected Tensor as element {position} in argument 0, but got "
                            f"{type(tensor).__name__}")  # fmt: skip
    shape = broadcast_shape([tensor._data.shape for tensor in found])
    return tuple([t if t._data.shape == shape else ops.expand(t, shape) for t in found])


@composite("broadcast_shapes(int[] shapes) -> int[]", method=False)
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes broadcast to.

    >>> import flambeau as torch
    >>> torch.broadcast_shapes((3, 1), (2,), ())
    torch.Size([3, 2])
    """
    result: list[int] = []
    for position, given in enumerate(shapes):
        shape = (given,) if isinstance(given, int) else tuple(given)
        result = [1] * (len(shape) - len(result)) + result
        for back in range(-1, -len(shape) - 1, -1):
            size = shape[back]
            if size < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if size in (1, result[back]):
                continue
            if result[back] != 1:
                wanted = _without_leading_ones(result, shapes, position)
                shown = shape if isinstance(given, int) else given
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {size} at {back}! Mismatching "
                    f"argument at index {position} had {shown}; but expected shape should be "
                    f"broadcastable to {wanted}"
                )
            result[back] = size
    return Size(result)


def _without_leading_ones(result: list[int], shapes: Any, position: int) -> list[int]:
    longest = max(1 if isinstance(shape, int) else len(shape) for shape in shapes)
    return [1] * (longest - len(result)) + result


# ---- at least so many dims


def _at_least(name: str, raise_: Callable[[Any], Any], doc: str, printed: str) -> None:
    def function(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return raise_(tensors[0])
        given = tensors_of(tensors)
        try:
            return tuple([raise_(tensor) for tensor in given])
        except AttributeError as error:
            raise explained(row, (given,), error) from None

    function.__name__ = name
    function.__doc__ = with_example(doc, f"torch.{name}(torch.tensor([5, 6])).shape", printed)
    row = composite(
        f"{name}(Tensor[] tensors) -> Tensor[]", method=False, may_give_input=True
    )(function)  # fmt: skip


def _one(tensor: Any) -> Any:
    return ops.reshape(tensor, 1) if tensor._data.ndim == 0 else tensor


def _two(tensor: Any) -> Any:
    ndim = tensor._data.ndim
    if ndim == 0:
        return ops.reshape(tensor, 1, 1)
    return ops.unsqueeze(tensor, 0) if ndim == 1 else tensor


def _three(tensor: Any) -> Any:
    ndim = tensor._data.ndim
    if ndim == 0:
        return ops.reshape(tensor, 1, 1, 1)
    if ndim == 1:
        return ops.unsqueeze(ops.unsqueeze(tensor, 0), -1)
    return ops.unsqueeze(tensor, -1) if ndim == 2 else tensor


_at_least("atleast_1d", _one, "Views with at least one dim.", "torch.Size([2])")
_at_least("atleast_2d", _two, "Views with at least two dims; vectors become rows.",
          "torch.Size([1, 2])")  # fmt: skip
_at_least("atleast_3d", _three, "Views with at least three dims; matrices get a last one.",
          "torch.Size([1, 2, 1])")  # fmt: skip


# ---- grids and products

INDEXING_WARNING = (
    "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument."
)


@composite(
    "meshgrid(Tensor[] tensors, *, str indexing='ij') -> Tensor[]",
    may_give_input=True,
    bare=True,
    method=False,
)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Any, ...]:
    """Coordinates of a grid from the coordinates along each dim: expanded views.

    `indexing="xy"` exchanges the first two dims, as NumPy's default does.

    >>> import flambeau as torch
    >>> rows, columns = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
    >>> columns
    tensor([[0, 1, 2],
            [0, 1, 2]])
    """
    found = tensors_of(tensors)
    if indexing is None:
        warnings.warn(INDEXING_WARNING, UserWarning, stacklevel=2)
        indexing = "ij"
    try:
        _check_grid(found, indexing)
    except AttributeError as error:
        raise explained(meshgrid, (found, indexing), error) from None
    swap = indexing == "xy" and len(found) >= 2
    if swap:
        found[0], found[1] = found[1], found[0]
    shape = tuple([tensor._data.size for tensor in found])
    grids = []
    for position, tensor in enumerate(found):
        lone = [1] * len(found)
        lone[position] = -1
        grids.append(ops.expand(ops.view(tensor, lone), shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def _check_grid(tensors: list[Any], indexing: str) -> None:
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for tensor in tensors:
        if tensor._data.dtype != tensors[0]._data.dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if tensor.device != tensors[0].device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    if indexing not in ("ij", "xy"):
        raise RuntimeError('torch.meshgrid: indexing must be one of "xy" or "ij", but received: '
                           f"{indexing}")  # fmt: skip
    for tensor in tensors:
        if tensor._data.ndim > 1:
            raise RuntimeError("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but "
                               f"got: {tensor}")  # fmt: skip


@composite("cartesian_prod(Tensor[] tensors) -> Tensor", may_give_input=True, method=False)
def cartesian_prod(*tensors: Any) -> Any:
    """All tuples of one element from each vector, as rows.

    >>> import flambeau as torch
    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    found = tensors_of(tensors)
    try:
        shapes = [tensor._data.shape for tensor in found]
    except AttributeError as error:
        raise explained(cartesian_prod, (found,), error) from None
    for shape in shapes:
        if len(shape) != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(shape)}")
    if len(found) == 1:
        return found[0]
    grids = meshgrid.body(found, indexing="ij")
    return ops.stack([ops.flatten(grid) for grid in grids], 1)


@composite(
    "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", method=False
)
def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """All choices of `r` elements of a vector, in order, as rows.

    >>> import flambeau as torch
    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if input._data.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input._data.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return ops.new_empty(input, (0,))
    n = len(input._data)
    choose = combinations_with_replacement if with_replacement else combinations_of
    count = comb(n + r - 1 if with_replacement and n else n, r)
    # memory is taken at once, so that too much of it is refused before the work begins
    chosen = np.fromiter(chain.from_iterable(choose(range(n), r)), np.int64, count * r)
    chosen = chosen.reshape(count, r)
    columns = [
        ops.index_select(input, 0, on_device_of(wrap(np.ascontiguousarray(chosen[:, k])), input))
        for k in range(r)
    ]
    return ops.stack(columns, 1)


# ---- block_diag


def _matrix_shape(shape: tuple[int, ...], position: int) -> tuple[int, int]:
    if len(shape) > 2:
        raise RuntimeError(
            "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
            f"{position} has {len(shape)} dimensions"
        )
    return (1,) * (2 - len(shape)) + tuple(shape)  # type: ignore[return-value]


def _blocks(grad: Any, shapes: Any) -> list[Any]:
    """The gradient's blocks along the diagonal, in the shapes of the inputs."""
    parts = []
    row = column = 0
    for position, shape in enumerate(shapes):
        rows, columns = _matrix_shape(shape, position)
        part = ops.slice(ops.slice(grad, 0, row, row + rows), 1, column, column + columns)
        parts.append(ops.reshape(part, shape))
        row, column = row + rows, column + columns
    return parts


@internal(
    "block_diag(Tensor[] tensors) -> Tensor",
    public="_block_diag",
    saved_names={"tensors_shape": None},
    backward={"tensors": lambda grad, tensors_shape: _blocks(grad, tensors_shape)},
)
def block_diag_(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Matrices along the diagonal of a larger one, which is 0 elsewhere."""
    shapes = [_matrix_shape(array.shape, position) for position, array in enumerate(arrays)]
    kinds = [dt.from_numpy_dtype(array.dtype) for array in arrays]
    rows, columns = np.sum(shapes, axis=0)
    result = np.zeros((rows, columns), reduce(promote_types, kinds).numpy_dtype)
    row = column = 0
    for array, (height, width) in zip(arrays, shapes, strict=True):
        result[row : row + height, column : column + width] = array.reshape(height, width)
        row, column = row + height, column + width
    return result


@composite("block_diag.public(Tensor[] tensors) -> Tensor", method=False)
def block_diag(*tensors: Any) -> Any:
    """Matrices along the diagonal of a larger one, which is 0 elsewhere.

    Numbers count as 1 x 1 matrices and vectors as rows.

    >>> import flambeau as torch
    >>> torch.block_diag(torch.ones(1, 1), torch.ones(1, 2))
    tensor([[1., 0., 0.],
            [0., 1., 1.]])
    """
    if not tensors:
        return wrap(np.empty((1, 0), dt.Defaults.numpy_dtype))
    return ops._block_diag(tensors_of(tensors))
