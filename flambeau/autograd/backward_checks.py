"""What `gradcheck` asks of a backward beyond numbers: it is linear, and minds missing gradients.

Each check raises GradcheckError.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.backward import grad
from flambeau.autograd.function import Function

NEW_CHECK = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by "
    "default, but it may break existing callers of this function. If this is true for you, you can "
    'call this function with "check_undefined_grad=False" to disable the feature'
)
SEE = 'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'


class GradcheckError(RuntimeError):
    """A formula and its numerical check disagree."""


class Forgotten(Function):
    """The same tensor, for which backward gets no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        """The same tensor."""
        return x.view_as(x)  # type: ignore[attr-defined]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> None:
        """Nothing."""


def check_is_linear(outputs: list[Tensor], inputs: list[Tensor]) -> None:
    """From zeros, backward makes zeros, in the form of the inputs."""
    starts = [wrap(np.zeros(o._data.shape, o._data.dtype)) for o in outputs]
    found = grad(outputs, inputs, starts, retain_graph=True, allow_unused=True)
    for part, x in zip(found, inputs, strict=True):
        if part is None:
            continue
        if part.layout is not x.layout:
            raise GradcheckError(f"grad is incorrect layout ({part.layout} is not {x.layout})")
        if (getattr(part, "_entries", part)._data != 0).any():
            raise GradcheckError("backward not multiplied by grad_output")
        if part.dtype is not x.dtype:
            raise GradcheckError("grad is incorrect type")
        if part.shape != x.shape:
            raise GradcheckError("grad is incorrect size")


def check_without_gradients(outputs: list[Tensor], inputs: list[Tensor]) -> None:
    """Backward can do without gradients, of all outputs or of one of several."""
    _check_forgotten([Forgotten.apply(output) for output in outputs], inputs)
    for position in range(len(outputs)) if len(outputs) > 1 else ():
        some = [o for i, o in enumerate(outputs) if i != position]
        zeros: list[Any] = [o * 0 for o in some]  # type: ignore[operator]
        _check_forgotten([Forgotten.apply(outputs[position]), *zeros], inputs)


def _check_forgotten(roots: list[Tensor], inputs: list[Tensor]) -> None:
    starts = [wrap(np.zeros(root._data.shape, root._data.dtype)) for root in roots]
    try:
        found = grad(roots, inputs, starts, retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        warnings.warn(NEW_CHECK, UserWarning, stacklevel=5)
        text = f"Expected backward function to handle undefined output grads. {SEE}"
        raise GradcheckError(text) from error
    for part in found:
        if part is not None and (getattr(part, "_entries", part)._data != 0).any():
            warnings.warn(NEW_CHECK, UserWarning, stacklevel=5)
            raise GradcheckError("Expected all input grads to be undefined or zero when all output "
                                 f"grads are undefined or zero. {SEE}")  # fmt: skip


def check_perturbed(before: list[Tensor], after: list[Tensor], index: Any, eps: float) -> None:
    """Shapes and types of outputs don't depend on values."""
    for first, second in zip(before, after, strict=False):
        if first.shape != second.shape:
            raise AssertionError(
                "Expected `func` to return outputs with the same shape when inputs are perturbed "
                f"on index {index} by {eps}, but got: shapes {first.shape} and {second.shape}."
            )
        if first.dtype is not second.dtype:
            raise AssertionError(
                "Expected `func` to return outputs with the same dtype when inputs are perturbed "
                f"on index {index} by {eps}, but got: dtypes {first.dtype} and {second.dtype}."
            )
