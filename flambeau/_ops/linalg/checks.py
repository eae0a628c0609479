"""Refusals of the linear algebra kernels, in torch's words, and the batch shapes they share."""

import ml_dtypes
import numpy as np

from flambeau._core import dtype as dt
from flambeau._tensor.examples import numbers_under

Array = np.ndarray

LAPACK_TYPES = frozenset(map(np.dtype, ("float32", "float64", "complex64", "complex128")))
HALF_TYPES = frozenset({np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)})


class LinAlgError(RuntimeError):
    """torch.linalg.LinAlgError: a factorization broke down.

    >>> import flambeau as torch
    >>> try:
    ...     torch.linalg.inv(torch.zeros(2, 2))
    ... except torch.linalg.LinAlgError:
    ...     print("singular")
    singular
    """


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"


def type_name(a: Array) -> str:
    """Torch's name of the array's scalar type, as its messages spell it."""
    found = dt.BY_NUMPY.get(a.dtype)
    return str(a.dtype) if found is None else found.scalar_name


def check_matrix(a: Array, name: str, letter: str = "A") -> None:
    if a.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {letter} must have at least 2 dimensions.")


def check_square(a: Array, name: str) -> None:
    check_matrix(a, name)
    rows, columns = a.shape[-2:]
    if rows != columns:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, "
            f"but they are {rows} by {columns} matrices"
        )


def check_floating(a: Array, name: str, half_too: bool = True) -> None:
    """Integers are refused; half types too, unless ``half_too``."""
    if a.dtype in HALF_TYPES and not half_too:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {type_name(a)}")
    if a.dtype not in LAPACK_TYPES and a.dtype not in HALF_TYPES:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {type_name(a)}"
        )


def check_kernel(a: Array, kernel: str) -> None:
    """Only the four LAPACK dtypes pass."""
    if a.dtype not in LAPACK_TYPES:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(a)}'")


def check_same_dtype(a: Array, b: Array, name: str, first: str = "A", second: str = "B") -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected {first} and {second} to have the same dtype, but found {first} "
            f"of type {type_name(a)} and {second} of type {type_name(b)} instead"
        )


def check_equation(a: Array, b: Array, name: str, left: bool) -> None:
    """The shapes of AX = B, or of XA = B."""
    if a.shape[-1] != b.shape[-2 if left else -1]:
        shapes = f"{a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]}"
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} ({shapes})"
        )


def raise_first_failure(
    info: Array, name: str, sentence: str, error: type[RuntimeError] = LinAlgError
) -> None:
    """``error`` for the first element with info > 0; ``sentence`` may name ``{info}``."""
    info = numbers_under(info)
    if not np.count_nonzero(info):
        return
    flat = info.reshape(-1)
    failed = np.flatnonzero(flat)
    where = f"(Batch element {failed[0]}): " if info.ndim else ""
    raise error(f"{name}: {where}" + sentence.format(info=int(flat[failed[0]])))


def check_broadcast(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    """Torch's refusal of shapes that do not broadcast."""
    longest = max(len(first), len(second))
    for back in range(1, min(len(first), len(second)) + 1):
        if first[-back] != second[-back] and 1 not in (first[-back], second[-back]):
            raise RuntimeError(
                f"The size of tensor a ({first[-back]}) must match the size of tensor b "
                f"({second[-back]}) at non-singleton dimension {longest - back}"
            )


def is_vector(a: Array, b: Array) -> bool:
    """Whether B in AX = B stands for a batch of vectors."""
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])


def broadcast_batches(*arrays: Array) -> list[Array]:
    """The arrays with their batch dims (all but the last two) broadcast together; read-only."""
    if len({array.shape[:-2] for array in arrays}) == 1:
        return list(arrays)
    for array in arrays[:-1]:
        # Torch names the right-hand side, which comes last here, as its tensor a.
        check_broadcast(arrays[-1].shape[:-2], array.shape[:-2])
    batch = np.broadcast_shapes(*(array.shape[:-2] for array in arrays))
    return [np.broadcast_to(array, batch + array.shape[-2:]) for array in arrays]


def transposed(a: Array) -> Array:
    """The last two dims swapped; a view."""
    return np.swapaxes(a, -1, -2)


def adjoint(a: Array) -> Array:
    """The conjugate transpose."""
    return transposed(a).conj() if a.dtype.kind == "c" else transposed(a)


def real_dtype(dtype: np.dtype) -> np.dtype:
    """float32 for complex64, float64 for complex128, the dtype itself for real ones."""
    return np.empty(0, dtype).real.dtype
