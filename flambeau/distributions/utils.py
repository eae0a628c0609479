"""What distributions share: parameters of one shape, probabilities and their logits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import update_wrapper
from numbers import Number
from typing import Any

from flambeau._core import dtype as dt
from flambeau._ops.table.namespace import ops
from flambeau._tensor.conversion import tensor
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import enable_grad

__all__ = [
    "broadcast_all", "logits_to_probs", "clamp_probs", "probs_to_logits", "lazy_property",
    "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip

euler_constant = 0.57721566490153286060
NOT_VALUES = (
    "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
    "__torch_function__."
)


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors of one shape; numbers become tensors of the first tensor's type.

    Without a tensor among them, they have the default type.
    """
    if not all(_is_value(value) for value in values):
        raise ValueError(NOT_VALUES)
    tensors = [value for value in values if isinstance(value, Tensor)]
    options: dict[str, Any] = {"dtype": dt.default_dtype()}
    if tensors:
        options = {"dtype": tensors[0].dtype, "device": tensors[0].device}
    made = [v if not isinstance(v, Number) else tensor(v, **options) for v in values]
    return tuple(ops.broadcast_tensors(*made))


def _is_value(value: Any) -> bool:
    return isinstance(value, (Tensor, Number)) or hasattr(type(value), "__torch_function__")


def finfo(like: Tensor) -> Any:
    """The limits of a tensor's type."""
    return dt.finfo(like.dtype)


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    return ops.normal(
        ops.zeros(shape, dtype=dtype, device=device), ops.ones(shape, dtype=dtype, device=device)
    )


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dims."""
    if dim == 0:
        return value
    return value.reshape((*value.shape[:-dim], -1)).sum(-1)


def softplus(x: Tensor) -> Tensor:
    """`log(1 + exp(x))`."""
    return ops.nn.functional.softplus(x)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept off 0 and 1, so that their logarithms are finite."""
    eps = finfo(probs).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of logits: of log-odds if binary, else of logarithms along the last dim."""
    return ops.sigmoid(logits) if is_binary else ops.softmax(logits, dim=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The reverse of `logits_to_probs`; probabilities of 0 and 1 give finite logits."""
    clamped = clamp_probs(probs)
    logits = ops.log(clamped)
    return logits - ops.log1p(-clamped) if is_binary else logits


class _ReadFromClass(property):
    """What the class shows in place of a lazy property, for documentation."""


class lazy_property:
    """A method that is called when its value is first asked for; the instance keeps the value."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return _ReadFromClass(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        return vars(instance).setdefault(self.wrapped.__name__, value)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangles of matrices as vectors, row by row, up to diagonal `diag`."""
    size = mat.shape[-1]
    if not -size <= diag < size:
        raise ValueError(f"diag ({diag}) provided is outside [{-size}, {size - 1}].")
    rows, columns = ops.tril_indices(size, size, diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The reverse of `tril_matrix_to_vec`; zeros fill the rest."""
    # n(n + 1)/2 numbers up to the main diagonal: the root of a quadratic equation
    root = math.sqrt((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1))
    size = round((root - 1 - 2 * diag) / 2)
    matrix = vec.new_zeros((*vec.shape[:-1], size, size))
    rows, columns = ops.tril_indices(size, size, diag, device=vec.device)
    matrix[..., rows, columns] = vec
    return matrix
