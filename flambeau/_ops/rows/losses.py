"""Losses of elements and their targets: one expression of a value, one of its slope.

What every form of a loss is made of: the NumPy form of small tensors, the row formula of the sum
and that of the gradient, and the loops of GPUs. Sources: the functions' own definitions in
PyTorch's documentation; slopes are derived by hand from them.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any

import numpy as np

from flambeau._compiler.expr import absolute, exp, log, log1p, maximum, minimum, where
from flambeau._compiler.fuse import Formula, amax, amin, total
from flambeau._compiler.row_numpy import formula_of_arrays

Expression = Callable[..., Any]


class Loss:
    """A loss of an element and its target, and perhaps of a number.

    value, slope: expressions of (x, target, *numbers), the latter the derivative by x.
    """

    def __init__(self, name: str, value: Expression, slope: Expression, *numbers: str) -> None:
        names = ("x", "target", *numbers)
        self.value = _named(value, name, *names)
        self.total = _formula(lambda *given: total(value(*given)), f"{name}_error", *numbers)
        self.gradient = _formula(
            lambda *given: slope(*given[:-1]) * given[-1], f"{name}_slope", *numbers, "factor"
        )
        self.scaled_slope = _named(
            lambda *given: slope(*given[:-2]) * (given[-2] * given[-1]), f"{name}_scaled_slope",
            *names, "grad", "factor",
        )  # fmt: skip


class Difference(Loss):
    """A loss of the gap between element and target: expressions of (gap, *numbers)."""

    def __init__(self, name: str, value: Expression, slope: Expression) -> None:
        numbers = list(signature(value).parameters)[1:]
        super().__init__(name, lambda x, target, *given: value(x - target, *given),
                         lambda x, target, *given: slope(x - target, *given),
                         *numbers)  # fmt: skip
        kinds = {"gap": "full", **dict.fromkeys(numbers, "number")}
        named = (
            _named(value, f"{name}_of_gap", *kinds),
            _named(slope, f"{name}_slope_of_gap", *kinds),
        )
        self.formulas = Formula(named[0], kinds), Formula(named[1], kinds)

    def values(self, gap: np.ndarray, *numbers: float) -> np.ndarray:
        """The loss of each gap."""
        return _of_array(self.formulas[0], gap, numbers)

    def slopes(self, gap: np.ndarray, *numbers: float) -> np.ndarray:
        """The slope at each gap."""
        return _of_array(self.formulas[1], gap, numbers)


def _of_array(formula: Formula, gap: np.ndarray, numbers: tuple[float, ...]) -> np.ndarray:
    found = formula_of_arrays(formula)(-1, gap if gap.ndim else gap.reshape(1), *numbers)
    return found.reshape(gap.shape)  # type: ignore[no-any-return]


def _formula(function: Expression, name: str, *numbers: str) -> Formula:
    kinds = {"x": "full", "target": "full", **dict.fromkeys(numbers, "number")}
    return Formula(_named(function, name, *kinds), kinds)


def _named(function: Expression, name: str, *parameters: str) -> Expression:
    """The function, with a name and the names of its parameters, which tools ask for."""
    function.__name__ = name
    listed = [Parameter(each, Parameter.POSITIONAL_OR_KEYWORD) for each in parameters]
    function.__signature__ = Signature(listed)  # type: ignore[attr-defined]
    return function


# ---- losses of a difference


def huber(gap: Any, delta: Any) -> Any:
    """`gap**2 / 2` up to delta, then `delta * (gap - delta / 2)`."""
    size = absolute(gap)
    return where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))


def smooth(gap: Any, beta: Any) -> Any:
    """`gap**2 / (2 beta)` below beta, then `gap - beta / 2`."""
    size = absolute(gap)
    return where(size < beta, 0.5 / beta * size * size, size - 0.5 * beta)


SQUARED = Difference("squared", lambda gap: gap * gap, lambda gap: 2 * gap)
HUBER = Difference("huber", huber, lambda gap, delta: maximum(minimum(gap, delta), -delta))
SMOOTH = Difference("smooth", smooth, lambda gap, beta: maximum(minimum(gap / beta, 1), -1))


# ---- binary cross-entropy


def logit(x: Any, target: Any) -> Any:
    """That of `sigmoid(x)`: `(1 - t) x + softplus(-x)`."""
    return (1 - target) * x + (log1p(exp(-absolute(x))) + maximum(-x, 0))


def probability(x: Any, target: Any) -> Any:
    """That of probabilities, logarithms at least -100."""
    return (target - 1) * maximum(log1p(-x), -100) - target * maximum(log(x), -100)


def soft_margin(x: Any, target: Any) -> Any:
    """`log(1 + exp(-t x))`."""
    return log1p(exp(-absolute(target * x))) + maximum(-target * x, 0)


SOFT_MARGIN = Loss("soft_margin", soft_margin, lambda x, target: -target / (1 + exp(target * x)))
LOGIT = Loss("logit", logit, lambda x, target: 1 / (1 + exp(-x)) - target)
PROBABILITY = Loss("probability", probability,
                   lambda x, target: (x - target) / maximum((1 - x) * x, 1e-12))  # fmt: skip
PROBABILITY_AND_RANGE = Formula(
    _named(lambda x, target: (total(probability(x, target)), amin(minimum(x, target)),
                              amax(maximum(x, target))), "probability_and_range", "x", "target"),
    {"x": "full", "target": "full"},
)  # fmt: skip
"""The sum of a loss, and the range of what it is made of."""
