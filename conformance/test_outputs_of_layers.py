"""`out=` of functions of `nn.functional`: what is written, resized and refused, in PyTorch's words;
and functions that take no `out=` there."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch as reference

import flambeau

Call = Callable[[Any, Any, Any], Any]


def _plane(t: Any) -> Any:
    return t.arange(16.0).reshape(1, 4, 4) - 5


def _weight(t: Any, x: Any) -> Any:
    return t.ones(3, 4, dtype=x.dtype)


CALLS: dict[str, Call] = {
    "avg_pool2d": lambda t, x, o: t.nn.functional.avg_pool2d(x, 2, out=o),
    "avg_pool2d, positions": lambda t, x, o: t.nn.functional.avg_pool2d(
        x, 2, 1, 1, False, False, 3, out=o),
    "avg_pool3d": lambda t, x, o: t.nn.functional.avg_pool3d(x[None], (1, 2, 2), out=o),
    "gelu": lambda t, x, o: t.nn.functional.gelu(x, out=o),
    "gelu, tanh": lambda t, x, o: t.nn.functional.gelu(x, approximate="tanh", out=o),
    "hardshrink": lambda t, x, o: t.nn.functional.hardshrink(x, 2.0, out=o),
    "linear": lambda t, x, o: t.nn.functional.linear(x[0], _weight(t, x), out=o),
    "linear, bias": lambda t, x, o: t.nn.functional.linear(
        x, _weight(t, x), t.ones(3, dtype=x.dtype), out=o),
    "logsigmoid": lambda t, x, o: t.nn.functional.logsigmoid(x, out=o),
    "softplus": lambda t, x, o: t.nn.functional.softplus(x, out=o),
    "softshrink": lambda t, x, o: t.nn.functional.softshrink(x, out=o),
}  # fmt: skip
TARGETS: dict[str, Callable[[Any], Any]] = {
    "empty": lambda t: t.empty(0), "none": lambda t: None, "larger": lambda t: t.ones(50),
    "double": lambda t: t.empty(0, dtype=t.float64), "int": lambda t: t.empty(0, dtype=t.int64),
    "learning": lambda t: t.empty(0, requires_grad=True), "number": lambda t: 3,
}  # fmt: skip
ONE_NAME = r"log_sigmoid(_forward)?\(", "logsigmoid("
"""PyTorch's errors name parts of a function."""


def _seen(t: Any, call: Call, target: Callable[[Any], Any], learns: bool) -> Any:
    x = _plane(t).requires_grad_(learns)
    out = target(t)
    try:
        result = call(t, x, out)
    except Exception as error:  # noqa: BLE001  # whatever a library refuses
        return type(error).__name__, re.sub(*ONE_NAME, str(error).split("\n")[0])
    same = result is out
    return same, str(result.dtype).split(".")[1], tuple(result.shape), result.detach().tolist()


def _alike(ours: Any, theirs: Any) -> bool:
    if len(ours) != 4 or len(theirs) != 4:
        return bool(ours == theirs)
    close = reference.allclose(
        reference.tensor(ours[-1]), reference.tensor(theirs[-1]), rtol=1e-5, atol=1e-5
    )
    return bool(ours[:-1] == theirs[:-1]) and close


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_out(name: str, target: str, learns: bool) -> None:
    ours, theirs = (_seen(t, CALLS[name], TARGETS[target], learns) for t in (flambeau, reference))
    assert _alike(ours, theirs), (ours, theirs)


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite", "isreal", "relu"])
def test_no_out(name: str) -> None:
    for t in (flambeau, reference):
        with pytest.raises(
            TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'out'"
        ):
            getattr(t, name)(t.ones(3), out=t.ones(3))
        with pytest.raises(TypeError):
            getattr(t.Tensor, name)(t.ones(3), out=t.ones(3))
