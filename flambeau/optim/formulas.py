"""Formulas: how an optimizer changes one element, written once and run in three forms.

    @formula
    def sgd(p, g, velocity, lr):
        return (add(p, g, -lr),)

takes a parameter, its gradient, what is kept of it (None where an option leaves it out) and the
numbers of this step, and returns the new parameter and what is kept, in that order. Numbers that
are None, True or False are options. Called with ndarrays it runs on NumPy, called with tensors on
their operators, so that gradients flow through it; `native` is the text of the same function as
part of a kernel. The words of formulas are below, under the names of the operators they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._tensor.tensor import Tensor

WORDS = (
    "absolute", "add", "addcdiv", "addcmul", "clamped", "detached", "lerp", "maximum", "select",
    "sign", "sqrt",
)  # fmt: skip


class Formula:
    """A formula: the function, the names of what it takes, and its form for kernels."""

    def __init__(self, function: Callable[..., tuple[Any, ...]]) -> None:
        code = function.__code__
        self.function = function
        self.names = code.co_varnames[: code.co_argcount]
        self.__doc__ = function.__doc__
        self._native: Any = None

    def __repr__(self) -> str:
        return f"<formula {self.function.__name__}>"

    def __call__(self, *values: Any, **numbers: Any) -> tuple[Any, ...]:
        return self.function(*values, **numbers)

    @property
    def native(self) -> Any:
        """The same text in the kernel language, where other functions stand behind the words."""
        if self._native is None:
            from dataclasses import replace

            from flambeau._compiler.native import native
            from flambeau._ops.optimizers.kernels import steps as kernels

            found = native(self.function)
            found.parameters = [replace(each, annotation=None) for each in found.parameters]
            found.scope.update({word: getattr(kernels, word) for word in WORDS})
            self._native = found
        return self._native


formula = Formula


# ---- words: numbers are floats, or tensors where gradients reach an option


def add(value: Any, other: Any, alpha: Any) -> Any:
    """value + alpha·other."""
    if isinstance(value, Tensor) and not isinstance(alpha, Tensor):
        return value.add(other, alpha=alpha)  # type: ignore[attr-defined]
    return value + alpha * other


def addcmul(value: Any, one: Any, other: Any, weight: Any) -> Any:
    """value + weight·one·other."""
    if isinstance(value, Tensor) and not isinstance(weight, Tensor):
        return value.addcmul(one, other, value=weight)  # type: ignore[attr-defined]
    return value + weight * one * other


def addcdiv(value: Any, one: Any, other: Any, weight: Any) -> Any:
    """value + weight·one/other."""
    if isinstance(value, Tensor) and not isinstance(weight, Tensor):
        return value.addcdiv(one, other, value=weight)  # type: ignore[attr-defined]
    return value + weight * one / other


def lerp(start: Any, end: Any, weight: Any) -> Any:
    """start + weight·(end - start)."""
    if isinstance(start, Tensor):
        return start.lerp(end, weight)  # type: ignore[attr-defined]
    if weight < 0.5:  # noqa: PLR2004  (from the nearer end, as the operator)
        return start + weight * (end - start)
    return end + (weight - 1) * (end - start)


def sqrt(value: Any) -> Any:
    """√value."""
    return value.sqrt() if isinstance(value, Tensor) else np.sqrt(value)


def sign(value: Any) -> Any:
    """-1, 0 or 1; 0 for nan."""
    if isinstance(value, Tensor):
        return value.sign()  # type: ignore[attr-defined]
    return np.subtract(value > 0, value < 0, dtype=value.dtype)


def absolute(value: Any) -> Any:
    """|value|."""
    return abs(value)


def maximum(one: Any, other: Any) -> Any:
    """The larger one; nan if either is."""
    if isinstance(one, Tensor):
        return one.maximum(other)  # type: ignore[attr-defined]
    return np.maximum(one, other)


def clamped(value: Any, least: float, most: float) -> Any:
    """The value, or the limit that it is beyond."""
    return value.clip(least, most)


def select(condition: Any, one: Any, other: Any) -> Any:
    """`one` where the condition holds, else `other`."""
    if isinstance(condition, Tensor):
        from flambeau._ops.table.namespace import ops

        return ops.where(condition, one, other)
    return np.where(condition, one, other)


def detached(value: Any) -> Any:
    """The value, through which no gradient flows."""
    return value.detach().clone() if isinstance(value, Tensor) else value
