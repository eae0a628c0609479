"""Python's operators beside objects of other classes: who is asked, and what comes of it."""

from __future__ import annotations

import decimal
import operator
import warnings
from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau

BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor",
          "lshift", "rshift", "lt", "le", "gt", "ge", "eq", "ne")  # fmt: skip
IN_PLACE = tuple(f"i{name.rstrip('_')}" for name in BINARY[:13])


def _answer(name: str) -> Any:
    return lambda self, *others: f"{type(self).__name__} {name} {len(others)}"


def _declined(self: Any, *others: Any) -> Any:
    return NotImplemented


def _taken(cls: type, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    return f"taken over: {[kind.__name__ for kind in args]}" if kwargs else "taken over"


NAMES = [f"__{prefix}{name.rstrip('_')}__" for name in BINARY for prefix in ("", "r", "i")]
ANSWERS = {name: _answer(name) for name in NAMES}
TAKES_OVER: dict[str, Any] = {"__torch_function__": classmethod(_taken)}
DECLINES = {"__torch_function__": classmethod(_declined)}


class Forwards:
    """Has every attribute that a tensor has."""

    def __init__(self, inner: Any) -> None:
        self.__dict__["inner"] = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class AsArray:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([1.0, 2.0])


CLASSES: dict[str, type] = {
    "Plain": type("Plain", (), {"__hash__": None}),
    "Answers": type("Answers", (), ANSWERS),
    "Declines": type("Declines", (), dict.fromkeys(NAMES, _declined)),
    "Before": type("Before", (), {**ANSWERS, "__array_priority__": 10000}),
    "TakesOver": type("TakesOver", (), TAKES_OVER),
    "TakesOverFirst": type("TakesOverFirst", (), {**ANSWERS, **TAKES_OVER}),
    "TakesNothing": type("TakesNothing", (), DECLINES),
    "TakesNothingButAnswers": type("TakesNothingButAnswers", (), {**ANSWERS, **DECLINES}),
    "AsArray": AsArray,
    "AsArrayAnswers": type("AsArrayAnswers", (AsArray,), ANSWERS),
}
VALUES: tuple[Any, ...] = (None, "a", [1.0, 2.0], (1.0, 2.0), {}, slice(2), ..., decimal.Decimal(2))


def others(torch: Any) -> list[Any]:
    """Objects beside a tensor."""
    forwarding = [Forwards, type("ForwardsAnswers", (Forwards,), ANSWERS)]
    wrapped = [kind(torch.tensor([1.0, 2.0])) for kind in forwarding]
    return [*(kind() for kind in CLASSES.values()), *VALUES, *wrapped]


def told(torch: Any, name: str, place: int, left: bool, dims: int) -> str:
    """What an operator gives with a tensor on one side."""
    tensor = torch.tensor([3.0, 4.0] if dims else 3)
    pair = (tensor, others(torch)[place])
    try:
        return str(getattr(operator, name)(*(pair if left else pair[::-1])))
    except Exception as error:  # noqa: BLE001  # compared, whatever it is
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("name", BINARY + IN_PLACE)
def test_operands_of_other_classes(name: str) -> None:
    sides = (True,) if name in IN_PLACE else (True, False)
    for place in range(len(others(flambeau))):
        for left in sides:
            for dims in (0, 1):
                here, there = (
                    told(torch, name, place, left, dims) for torch in (flambeau, reference)
                )
                assert here == there, (name, place, left, dims)


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("kind", ["float32", "int64", "complex64"])
def test_arrays_are_not_written_into_tensors(name: str, kind: str) -> None:
    """`x += array` is `x = x + array`."""
    found: list[Any] = []
    for torch in (flambeau, reference):
        tensor = torch.tensor([1, 2])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy's, of how PyTorch is asked for results
                result = getattr(operator, name)(tensor, np.array([2, 1], kind))
        except TypeError:
            found.append("TypeError")
        else:
            found.append((result is tensor, str(result.dtype), result.tolist(), tensor.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", BINARY + IN_PLACE)
def test_tensors_of_both_libraries(name: str) -> None:
    """Neither knows the other's: a TypeError, and no endless asking."""
    call = getattr(operator, name)
    kinds = (flambeau.ones, reference.ones)
    ours = [flambeau.ones(2), flambeau.nn.Parameter(flambeau.ones(2))]
    theirs = [kinds[1](2), reference.nn.Parameter(kinds[1](2))]
    for pair in [(x, y) for x in ours for y in theirs] + [(y, x) for x in ours for y in theirs]:
        if name in ("eq", "ne"):
            assert call(*pair) is (name == "ne")
        else:
            with pytest.raises(TypeError):
                call(*pair)


def test_modes_see_the_methods_that_users_know() -> None:
    seen = []

    class Watching(flambeau.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = flambeau.ones(2)
    with Watching():
        x = 1 + x
        x += 1
    assert seen == [getattr(flambeau.Tensor, name) for name in ("add", "add_")]


def test_operands_while_a_mode_is_on() -> None:
    class Watching(flambeau.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    x = flambeau.ones(2)
    with Watching():
        assert x + CLASSES["Answers"]() == "Answers __radd__ 1"
        x += CLASSES["Answers"]()
    assert x == "Answers __radd__ 1"
