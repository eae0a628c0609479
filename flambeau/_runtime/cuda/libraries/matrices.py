"""How products of row-major arrays are told to a library that thinks in columns.

The memory of a row-major matrix is that of its transposed in columns. `C = A B` is therefore asked
for as `C' = B' A'`: the library's first factor is our right one, its rows are our columns. A matrix
whose columns are contiguous is its own memory, and is multiplied transposed. Nothing is copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

Ints = tuple[int, ...]


class Stored(NamedTuple):
    """A matrix in column-major memory: the distance of its columns, and whether the matrix that is
    meant (the transposed of ours) is its transposed. `step`: elements to the next of a batch."""

    ld: int
    transposed: bool
    step: int = 0


@dataclass(frozen=True, slots=True)
class Array:
    """Shape and strides, in elements, of matrices: [*batch, rows, columns]."""

    shape: Ints
    strides: Ints

    @property
    def mT(self) -> Array:
        """The same with rows and columns exchanged."""
        return Array((*self.shape[:-2], self.shape[-1], self.shape[-2]),
                     (*self.strides[:-2], self.strides[-1], self.strides[-2]))  # fmt: skip


def contiguous(shape: Ints) -> Array:
    """Row-major memory for a shape."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return Array(shape, tuple(reversed(strides)))


def stored(array: Array, adjoint: bool = False) -> Stored | None:
    """How a matrix lies; None where neither its rows nor its columns are contiguous. `adjoint`: it
    is to be conjugated, which is done together with transposing, so that is preferred."""
    (rows, columns), (down, along) = array.shape[-2:], array.strides[-2:]
    found: list[Stored] = []
    if (along == 1 or columns == 1) and (down >= columns or rows == 1):
        found.append(Stored(max(down if rows > 1 else columns, columns, 1), False))
    if (down == 1 or rows == 1) and (along >= rows or columns == 1):
        found.append(Stored(max(along if columns > 1 else rows, rows, 1), True))
    if not found:
        return None
    return found[-1] if adjoint else found[0]


@dataclass(frozen=True, slots=True)
class Product:
    """One product, or `batch` of them at even distances, in our terms: [rows, depth] times
    [depth, columns]. `outer`: where the next such product begins, in elements of left, right, out
    and added; the first one begins at 0 everywhere."""

    rows: int
    columns: int
    depth: int
    batch: int
    left: Stored
    right: Stored
    out: Stored
    added: Stored | None
    outer: tuple[tuple[int, ...], ...]


class _Dim(NamedTuple):
    """A dim of the batch: its size and the four distances."""

    size: int
    steps: Ints


def arranged(left: Array, right: Array, out: Array, added: Array | None = None,
             adjoint: tuple[bool, bool] = (False, False)) -> Product | None:  # fmt: skip
    """The calls for `out = left @ right`, to which `added` may be added. Batches broadcast to that
    of `out`; `added` has the shape of `out`. `adjoint`: factors that are to be conjugated. None
    where an array has to be copied first."""
    arrays = [left, right, out, out if added is None else added]
    dims = _collapsed(_dims(arrays))
    rows = left.shape[-2]
    folded = _folded(dims, left, right, out, added)
    if folded is not None:
        dims, rows, left, out, added = folded
        arrays = [left, right, out, out if added is None else added]
    found = [stored(array, *turn) for array, turn in zip(
        arrays, ((adjoint[0],), (adjoint[1],), (), ()), strict=True)]  # fmt: skip
    if None in found or found[2].transposed or found[3].transposed:  # type: ignore[union-attr]
        return None
    inner = max(dims, key=lambda dim: dim.size) if dims else _Dim(1, (0, 0, 0, 0))
    others = [dim for dim in dims if dim is not inner]
    placed = [
        replace_step(one, step)  # type: ignore[arg-type]
        for one, step in zip(found, inner.steps, strict=True)
    ]
    return Product(
        rows, right.shape[-1], left.shape[-1], inner.size, placed[0], placed[1], placed[2],
        None if added is None else placed[3], _corners(others),
    )  # fmt: skip


def replace_step(one: Stored, step: int) -> Stored:
    """The same matrix at another distance from the next."""
    return one._replace(step=step)


def _dims(arrays: list[Array]) -> list[_Dim]:
    """The dims of the batch that are longer than 1; those that broadcast have steps of 0."""
    batch = arrays[2].shape[:-2]
    padded = []
    for array in arrays:
        missing = len(batch) - (len(array.shape) - 2)
        sizes, steps = array.shape[:-2], array.strides[:-2]
        spread = [0 if size == 1 else step for size, step in zip(sizes, steps, strict=True)]
        padded.append((0,) * missing + tuple(spread))
    return [
        _Dim(size, tuple(steps[place] for steps in padded))
        for place, size in enumerate(batch)
        if size != 1
    ]


def _collapsed(dims: list[_Dim]) -> list[_Dim]:
    """Neighbours as one dim where all arrays go through both in even steps."""
    result: list[_Dim] = []
    for dim in dims:
        before = result[-1] if result else None
        even = before is not None and all(
            outer == inner * dim.size for outer, inner in zip(before.steps, dim.steps, strict=True)
        )
        if before is not None and even:
            result[-1] = _Dim(before.size * dim.size, dim.steps)
        else:
            result.append(dim)
    return result


def _folded(
    dims: list[_Dim], left: Array, right: Array, out: Array, added: Array | None
) -> tuple[list[_Dim], int, Array, Array, Array | None] | None:
    """A batch that shares the right factor as more rows of one product; None where it is none."""
    if len(dims) != 1 or dims[0].steps[1]:
        return None
    (size, (of_left, _, of_out, of_added)), rows = dims[0], left.shape[-2]
    steps = {"left": (left, of_left), "out": (out, of_out)}
    if added is not None:
        steps["added"] = (added, of_added)
    longer = {}
    for name, (array, step) in steps.items():
        down, along = array.strides[-2:]
        if rows == 1:
            down = step
        elif step != down * rows:
            return None
        longer[name] = Array((size * rows, array.shape[-1]), (down, along))
        if stored(longer[name]) is None:
            return None
    return [], size * rows, longer["left"], longer["out"], longer.get("added")


def _corners(dims: list[_Dim]) -> tuple[Ints, ...]:
    """Where the products of the outer batch begin, the first one included."""
    corners: list[Ints] = [(0, 0, 0, 0)]
    for dim in dims:
        corners = [
            tuple(start + place * step for start, step in zip(corner, dim.steps, strict=True))
            for corner in corners
            for place in range(dim.size)
        ]
    return tuple(corners)


def work(product: Product) -> int:
    """Multiply-adds of a product."""
    return product.batch * product.rows * product.columns * product.depth * len(product.outer)
