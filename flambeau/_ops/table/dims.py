"""Dims as users give them: negative, single, tuples; and torch's errors about them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from flambeau._tensor.symbolic_numbers import as_int
from flambeau._tensor.tensor import Tensor


def wrap_dim(dim: int, ndim: int) -> int:
    """A dim from 0 to ndim - 1; 0-dim tensors count as having one dim."""
    if dim.__class__ is not int:
        dim = plain_dim(dim)
    length = ndim or 1
    if -length <= dim < length:
        return dim + length if dim < 0 else dim
    if not -(1 << 63) <= dim < 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    raise IndexError(
        f"Dimension out of range (expected to be in range of [{-length}, {length - 1}], "
        f"but got {dim})"
    )


def plain_dim(dim: Any) -> int:
    """A dim that is no plain int: NumPy's, or that of a tensor without dims. TypeError for others,
    truth values and arrays among them."""
    if isinstance(dim, Tensor):
        data = dim._data
        if data.ndim or data.dtype.kind not in "iu":
            raise TypeError(f"dim has to be an int, not {dim!r}")
        return int(data.item())
    if isinstance(dim, (bool, np.bool_, np.ndarray)):
        raise TypeError(f"dim has to be an int, not {dim!r}")
    return index(dim)


def size_at(data: Any, dim: int) -> int:
    """The size of a dim that has to be there, or torch's errors of `size(dim)`."""
    if not data.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return data.shape[wrap_dim(dim, data.ndim)]  # type: ignore[no-any-return]


def require_sizes(ndim: int, *dims: int) -> None:
    """Torch's errors of `size(dim)` for the first of some dims that a tensor has not."""
    for dim in dims:
        if not ndim:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        wrap_dim(dim, ndim)


def wrap_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    """Several dims, each once. None and () stand for all dims. TypeError for what is no int."""
    if dims.__class__ is tuple and len(dims) == 1 and dims[0].__class__ is int:
        dims = dims[0]  # how generated functions hand on a single dim
    if dims.__class__ is int:
        dim = wrap_dim(dims, ndim)
        return (dim,) if ndim else ()
    if dims is None or (isinstance(dims, (tuple, list)) and not dims):
        return tuple(range(ndim))
    if isinstance(dims, str):
        raise TypeError(f"dims have to be ints, not {dims!r}")
    if isinstance(dims, int) or not isinstance(dims, (tuple, list, Sequence)):
        dims = (dims,)
    if isinstance(dims[0], (bool, np.bool_)):  # the others are taken for what they are worth
        raise TypeError(f"dims have to be ints, not {dims!r}")
    wrapped = tuple([wrap_dim(index(dim), ndim) for dim in dims])
    for dim in wrapped:
        if wrapped.count(dim) > 1:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
    return wrapped if ndim else ()


def refuse_truth(values: Any) -> None:
    """TypeError for a list of ints that begins with a truth value; later ones count as ints."""
    if values and isinstance(values[0], (bool, np.bool_)):
        raise TypeError(f"a list of ints cannot begin with {values[0]!r}")


def infer_size(shape: Sequence[int], numel: int) -> tuple[int, ...]:
    """A shape with its -1 filled in, or torch's errors."""
    sizes = [size if size.__class__ is int else as_int(size) for size in shape]
    known = 1
    unknown = None
    for position, size in enumerate(sizes):
        if size == -1:
            if unknown is not None:
                raise RuntimeError("only one dimension can be inferred")
            unknown = position
        elif size < 0:
            raise RuntimeError(
                f"invalid shape dimension {size} at index {position} of shape {sizes}"
            )
        else:
            known *= size
    if unknown is None:
        if known != numel:
            raise RuntimeError(f"shape '{sizes}' is invalid for input of size {numel}")
        return tuple(sizes)
    if known == 0:
        if numel == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {sizes} because the unspecified "
                "dimension size -1 can be any value and is ambiguous"
            )
        raise RuntimeError(f"shape '{sizes}' is invalid for input of size {numel}")
    if numel % known:
        raise RuntimeError(f"shape '{sizes}' is invalid for input of size {numel}")
    sizes[unknown] = numel // known
    return tuple(sizes)
