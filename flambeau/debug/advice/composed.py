"""Formulas that are written out by hand, where one operator does it without overflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from flambeau._tensor.tensor import Tensor
from flambeau.debug.advice.base import Call, Topic, kind
from flambeau.debug.advice.origins import Origin

LOGS = ("log", "log2", "log10")
CLAMPS = frozenset(("clamp", "clamp_low", "clamp_high"))
SMALL = 1e-2
"""What is added to a probability at most, against log(0)."""

Made = list[Origin]
"""The operators back from a result, that which made it first."""


class Formula(NamedTuple):
    """Operators one after the other, the last first, and the one that does the same."""

    path: tuple[str, ...]
    said: str
    better: str
    why: str
    holds: Callable[[Made], bool] = lambda made: True  # noqa: E731


def is_shifted(origin: Origin) -> bool:
    """Whether the argument of exp had something subtracted before, its maximum or itself."""
    return origin.first is not None and origin.first.name in ("sub", "rsub", "log_softmax")


FORMULAS = (
    Formula(("log", "softmax"), "log(softmax(x))", "torch.log_softmax(x, dim)",
            "a probability below 1e-38 is 0, and its logarithm -inf"),
    Formula(("log", "sigmoid"), "log(sigmoid(x))", "torch.nn.functional.logsigmoid(x)",
            "-inf below x = -88, where the gradient is lost"),
    Formula(("log", "rsub", "sigmoid"), "log(1 - sigmoid(x))",
            "torch.nn.functional.logsigmoid(-x)", "-inf above x = 17",
            lambda made: made[1].number == 1),
    Formula(("log", "sum", "exp"), "log(sum(exp(x)))", "torch.logsumexp(x, dim)",
            "inf above x = 88", lambda made: not is_shifted(made[2])),
    Formula(("log", "add", "exp"), "log(1 + exp(x))", "torch.nn.functional.softplus(x)",
            "inf above x = 88", lambda made: made[1].number == 1),
    Formula(("log1p", "exp"), "log1p(exp(x))", "torch.nn.functional.softplus(x)",
            "inf above x = 88", lambda made: not is_shifted(made[1]) and not is_bounded(made[1])),
    Formula(("sqrt", "sum", "square"), "sqrt(sum(x * x))", "torch.linalg.vector_norm(x, dim=dim)",
            "the gradient at 0 is NaN, and squares overflow"),
)  # fmt: skip


def is_bounded(origin: Origin) -> bool:
    """Whether the argument of exp is -|x|, as in the stable forms of these formulas."""
    inner = origin.first
    return inner is not None and inner.name == "neg" and getattr(inner.first, "name", "") == "abs"


class ByHand(Topic):
    """Softmax followed by log, and its relatives."""

    title = "a formula by hand"
    operators = (*LOGS, "log1p", "sqrt", "div", "sub")

    def operator(self, call: Call) -> None:
        """Compare the way that a result has come with the formulas."""
        if not isinstance(call.result, Tensor) or call.result.dtype.is_complex:
            return
        if call.name in WRITTEN_OUT:
            WRITTEN_OUT[call.name](self, call)
            return
        made = operators_back(call)
        if not made or not is_trained(call):
            return
        names = ["log" if origin.name in LOGS else origin.name for origin in made]
        for formula in FORMULAS:
            length = len(formula.path)
            if tuple(names[:length]) == formula.path and formula.holds(made):
                self.tell(call, formula.said, formula.why, formula.better, made[:length])
                return

    def tell(self, call: Call, said: str, why: str, better: str, made: Made) -> None:
        """Report a formula, with the time of all its operators."""
        text = f"{said}, {kind(call.result)}: {why}"
        if not np.isfinite(call.result._data).all():
            text += "; so it is here"
        begun = made[-1].line.number
        if begun != call.line.number:
            text += f" (begun in line {begun})"
        self.add(call.line, text, better, 1, sum(origin.seconds for origin in made))

    def ratio(self, call: Call) -> None:
        """`e / e.sum()` with `e = x.exp()`, where no maximum was subtracted from x."""
        over, under = call.origins[:2]
        if over is None or under is None or over.name != "exp" or call.origin is None:
            return
        if under.name != "sum" or under.first is not over:
            return
        call.origin.name = "softmax"
        if not is_shifted(over):
            self.tell(call, "exp(x) / sum(exp(x))", "NaN above x = 88", "torch.softmax(x, dim)",
                      [call.origin, under, over])  # fmt: skip

    def variance(self, call: Call) -> None:
        """`(x * x).mean() - x.mean() ** 2`: two large numbers, of which only digits remain."""
        squares, mean = call.origins[:2]
        if squares is None or mean is None or mean.first is None or squares.first is None:
            return
        names = squares.name, squares.first.name, mean.name, mean.first.name
        if names == ("mean", "square", "square", "mean") and call.origin is not None:
            self.tell(call, "mean(x * x) - mean(x) ** 2", "digits cancel where the mean is large",
                      "torch.var(x, dim, correction=0)",
                      [call.origin, squares, mean, squares.first])  # fmt: skip


WRITTEN_OUT = {"div": ByHand.ratio, "sub": ByHand.variance}
"""Formulas whose two operands come of the same tensor."""


def operators_back(call: Call) -> Made:
    """The operators back from a result; of a logarithm, without what only guards it from 0."""
    made: Made = []
    origin = call.origin
    while origin is not None:
        if call.name not in LOGS or not is_guard(origin):
            made.append(origin)
        origin = origin.first
    return made


def is_guard(origin: Origin) -> bool:
    """Whether an operator only keeps a probability from being 0."""
    small = origin.number is not None and abs(origin.number) <= SMALL
    return origin.name in CLAMPS or (origin.name == "add" and small)


def is_trained(call: Call) -> bool:
    """A norm by hand matters where its gradient is wanted."""
    return call.name != "sqrt" or call.result.requires_grad


class OnProbabilities(Topic):
    """A loss that takes logits, given what softmax or sigmoid has made."""

    title = "a loss of probabilities"
    operators = ("cross_entropy", "nll_loss", "binary_cross_entropy_with_logits",
                 "binary_cross_entropy")  # fmt: skip

    def operator(self, call: Call) -> None:
        """Look at where the input of a loss comes from."""
        origin = call.origins[0]
        wrong = WRONG.get((call.name, origin.name)) if origin is not None else None
        if wrong is None or origin is None:
            return
        text, better = wrong
        if call.name == "binary_cross_entropy":
            lost = saturated(*call.values[:2])
            if not lost:
                return
            text = text.format(lost)
        said = f"{text}; the input is {kind(call.values[0])}, from line {origin.line.number}"
        self.add(call.line, said, better, 1, call.seconds)


WRONG = {
    ("cross_entropy", "softmax"): (
        "cross_entropy takes logits, and was given the result of softmax: softmax is done twice",
        "cross_entropy(logits, target), with what softmax was given"),
    ("nll_loss", "softmax"): (
        "nll_loss takes logarithms of probabilities, and was given the result of softmax",
        "cross_entropy(logits, target), or nll_loss(log_softmax(logits, dim), target)"),
    ("binary_cross_entropy_with_logits", "sigmoid"): (
        "the loss takes logits, and was given the result of sigmoid: sigmoid is done twice",
        "binary_cross_entropy_with_logits(logits, target), with what sigmoid was given"),
    ("binary_cross_entropy", "sigmoid"): (
        "{} probabilities are wrong and exactly 0 or 1: they have no gradient",
        "binary_cross_entropy_with_logits(logits, target), with what sigmoid was given"),
}  # fmt: skip


def saturated(input: Tensor, target: Tensor) -> int:
    """How many probabilities are exactly 0 or 1, and far from their targets."""
    given, wanted = input._data.astype(np.float32), target._data.astype(np.float32)
    if given.shape != wanted.shape:
        return 0
    return int((((given == 0) | (given == 1)) & (abs(given - wanted) > 0.5)).sum())  # noqa: PLR2004
