"""Jacobians of a function, by its formulas and by central differences: whole, or seen from one
direction only.

Rows are real parts of an output, columns real parts of an input: of a sparse one, all places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from flambeau._tensor.bits import writing
from flambeau._tensor.sparse import SparseTensor, sparse_tensor
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.backward import grad
from flambeau.autograd.backward_checks import check_perturbed


def outputs_of(value: Any) -> list[Tensor]:
    """The outputs of a function that are tensors, of which it has at least one if it has any."""
    items = value if isinstance(value, (tuple, list)) else (value,)
    found = [item for item in items if isinstance(item, Tensor)]
    if items and not found:
        kind = type(items[0]).__name__
        raise AttributeError(f"'{kind}' object has no attribute 'requires_grad'")
    return found


def _entries(data: np.ndarray) -> Iterator[tuple[tuple[int, ...], complex]]:
    """Every element, and for complex types both of its parts."""
    for index in np.ndindex(data.shape):
        yield index, 1.0
        if data.dtype.kind in "cW":
            yield index, 1j


def analytical(output: Tensor, inputs: list[Tensor]) -> list[np.ndarray]:
    """Jacobians by backward: rows are real output parts, columns real input parts."""
    rows: list[list[np.ndarray]] = [[] for _ in inputs]
    for index, part in _entries(output._data):
        start = np.zeros(output._data.shape, output._data.dtype)
        start[index] = part
        found = grad(output, inputs, wrap(start), retain_graph=True, allow_unused=True)
        for row, x, g in zip(rows, inputs, found, strict=True):
            data = np.zeros(tuple(x.shape), stored(x).dtype) if g is None else _gradient(g, x)
            row.append(real_parts(data))
    return [np.stack(row) if row else np.zeros((0, 0)) for row in rows]


def stored(x: Any) -> Any:
    """The numbers of a tensor; of a sparse one, its entries."""
    return x._entries._data if isinstance(x, SparseTensor) else x._data


def _gradient(grad: Any, x: Any) -> Any:
    """A gradient as dense numbers; of a sparse input, those at all its places."""
    if not isinstance(grad, SparseTensor):
        return grad._data
    if not isinstance(x, SparseTensor):
        return grad.to_dense()._data  # type: ignore[attr-defined]
    entries = stored(grad)
    dense = np.zeros(tuple(x.shape), entries.dtype)
    dense.reshape(-1)[_places_of(grad)] = entries
    return dense


def _places_of(x: SparseTensor) -> np.ndarray:
    """For each number of the entries, its index among all places."""
    places = np.arange(x.shape.numel()).reshape(tuple(x.shape))
    return places[tuple(x._places._data)]  # type: ignore[no-any-return]


@dataclass
class Perturbed:
    """An input whose numbers are changed in place: what the function is called with, the numbers,
    and for each of them its index among all places."""

    inputs: tuple[Any, ...]
    data: np.ndarray
    places: np.ndarray
    size: int


def perturbed(inputs: tuple[Any, ...], x: Any, masked: bool) -> Perturbed:
    """`x` as numbers to change: of a sparse one the entries if `masked`, else all places."""
    size = int(np.prod(tuple(x.shape), dtype=np.int64))
    if not isinstance(x, SparseTensor):
        return Perturbed(inputs, x._data, np.arange(size).reshape(x._data.shape), size)
    if not masked:
        full = _with_all_places(x)
        inputs, x = tuple(full if given is x else given for given in inputs), full
    return Perturbed(inputs, stored(x), _places_of(x), size)


def _with_all_places(x: Any) -> SparseTensor:
    dense = x.to_dense()._data
    sizes = dense.shape[: x.sparse_dim()]
    places = np.indices(sizes).reshape(len(sizes), -1)
    entries = wrap(dense.reshape(-1, *dense.shape[len(sizes) :]).copy())
    entries._requires_grad = x.requires_grad
    return sparse_tensor(wrap(places), entries, x.shape, True)


def real_parts(data: np.ndarray) -> np.ndarray:
    """The numbers of an array, complex ones as two."""
    flat = np.ascontiguousarray(data).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind in "cW" else flat


def numerical(func: Any, inputs: tuple[Any, ...], x: Tensor, output_index: int,
              eps: float, masked: bool = False) -> np.ndarray:  # fmt: skip
    """The same Jacobian by central differences; numbers are changed in place and put back."""
    with writing([x]):
        return _numerical(func, inputs, x, output_index, eps, masked)


def _numerical(func: Any, inputs: tuple[Any, ...], x: Tensor, output_index: int, eps: float,
               masked: bool) -> np.ndarray:  # fmt: skip
    given = perturbed(inputs, x, masked)
    parts = 2 if given.data.dtype.kind in "cW" else 1
    columns: list[Any] = [None] * (given.size * parts)
    for index, part in _entries(given.data):
        column = int(given.places[index]) * parts + (part == 1j)
        step = eps * (part if parts == 2 else 1)
        columns[column] = _difference(func, given, output_index, (index, step, eps))
    if not columns:
        return np.zeros((0, 0))
    rows = max((column.size for column in columns if column is not None), default=0)
    return np.stack([np.zeros(rows) if c is None else c for c in columns], axis=1)


def _difference(func: Any, given: Perturbed, output_index: int,
                at: tuple[Any, Any, float]) -> np.ndarray:  # fmt: skip
    """How an output changes with the numbers at an index, by a step to both sides."""
    index, step, eps = at
    before = given.data[index].copy()
    try:
        given.data[index] = before - step
        below = outputs_of(func(*given.inputs))
        value = _values(below[output_index])
        given.data[index] = before + step
        above = outputs_of(func(*given.inputs))
        check_perturbed(below, above, index, eps)
        return (_values(above[output_index]) - value) / (2 * eps)
    finally:
        given.data[index] = before


def _values(output: Tensor) -> np.ndarray:
    """A copy of an output's values: it may be a view of the input that is changed."""
    return real_parts(output._data).copy()


# ---- from one direction

Directions = tuple[np.ndarray, np.ndarray]


def directions(output: Tensor, x: Tensor, rows: slice) -> Directions:
    """Directions of length one among some real parts of an output and all of an input, always the
    same for the same sizes."""
    parts = 2 if stored(x).dtype.kind in "cW" else 1
    sizes = (real_parts(output._data).size, int(np.prod(tuple(x.shape), dtype=np.int64)) * parts)
    drawn = np.random.default_rng(sizes)
    left = np.zeros(sizes[0])
    left[rows] = _unit(drawn, left[rows].size)
    return left, _unit(drawn, sizes[1])


def _unit(drawn: np.random.Generator, size: int) -> np.ndarray:
    found = drawn.standard_normal(size)
    length = np.linalg.norm(found)
    return found / length if length else found


def analytical_along(output: Tensor, x: Tensor, along: Directions) -> float:
    """v · J u by one backward pass."""
    left, right = along
    start = np.zeros(output._data.shape, output._data.dtype)
    real_parts(start)[:] = left
    (found,) = grad(output, [x], wrap(start), retain_graph=True, allow_unused=True)
    return 0.0 if found is None else float(real_parts(_gradient(found, x)) @ right)


def numerical_along(func: Callable[..., Any], inputs: tuple[Any, ...], x: Tensor,
                    output_index: int, eps: float, along: Directions) -> float:  # fmt: skip
    """v · J u by two calls; numbers are changed in place and put back, of a sparse input those of
    its entries."""
    with writing([x]):
        return _numerical_along(func, inputs, x, output_index, eps, along)


def _numerical_along(func: Callable[..., Any], inputs: tuple[Any, ...], x: Tensor,
                     output_index: int, eps: float, along: Directions) -> float:  # fmt: skip
    left, right = along
    given = perturbed(inputs, x, masked=True)
    whole = np.zeros(given.size, given.data.dtype)
    real_parts(whole)[:] = right
    step = eps * whole[given.places]
    return float(left @ _difference(func, given, output_index, (..., step, eps)))
