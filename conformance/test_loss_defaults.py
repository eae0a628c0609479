"""Losses as functions of `torch` itself: without `reduction` they reduce nothing, in scripts they
take the mean, as `torch.nn.functional` does."""

from __future__ import annotations

import linecache
from typing import Any

import pytest

from conformance.side_by_side import compare

ARGUMENTS = {
    "hinge_embedding_loss": "a, b",
    "margin_ranking_loss": "a, b, sign",
    "cosine_embedding_loss": "a, b, sign[:, 0]",
    "kl_div": "a, b",
    "triplet_margin_loss": "a, b, c",
    "binary_cross_entropy_with_logits": "a, b",
    "ctc_loss": "scores, targets, torch.tensor([4, 4]), torch.tensor([1, 2])",
}


def names(t: Any) -> dict[str, Any]:
    """What the arguments are made of."""
    t.manual_seed(1)
    values = t.arange(24.0).reshape(4, 2, 3).sin()
    return {
        "__name__": __name__, "torch": t,
        "a": values[:, 0], "b": values[:, 1].abs(), "c": values[:, 1] * 2,
        "sign": values[:, 0].sign(), "scores": values.log_softmax(-1),
        "targets": t.tensor([[1, 2], [2, 1]]),
    }  # fmt: skip


def call(t: Any, text: str) -> Any:
    """The value of an expression with what it needs."""
    return eval(text, names(t))  # noqa: S307


@pytest.mark.parametrize("place", ["torch", "torch.nn.functional"])
@pytest.mark.parametrize("name", sorted(ARGUMENTS))
@pytest.mark.filterwarnings("ignore")
def test_default_reduction(name: str, place: str) -> None:
    compare(lambda t: call(t, f"{place}.{name}({ARGUMENTS[name]})"))


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_given_reduction(name: str, reduction: int) -> None:
    compare(lambda t: call(t, f"torch.{name}({ARGUMENTS[name]}, reduction={reduction})"))


def defined(t: Any, text: str) -> Any:
    """The function `f` of a text, with its source at hand for `script`."""
    filename = f"<a loss of {t.__name__}: {text}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    scope = names(t)
    exec(compile(text, filename, "exec"), scope)
    return scope["f"]


@pytest.mark.parametrize("name", sorted(set(ARGUMENTS) - {"ctc_loss"}))
def test_default_reduction_of_scripts_and_traces(name: str) -> None:
    text = f"def f(a, b, c, sign):\n    return torch.{name}({ARGUMENTS[name]})\n"

    def scenario(t: Any) -> Any:
        scope, function = names(t), defined(t, text)
        arguments = [scope[letter] for letter in ("a", "b", "c", "sign")]
        traced = t.jit.trace(function, arguments, check_trace=False)
        return t.jit.script(function)(*arguments), traced(*arguments), traced.code

    compare(scenario)
