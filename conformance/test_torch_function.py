"""Classes with `__torch_function__` are asked as in torch: one scenario, two libraries.

A scenario (one of `conformance/overriding/`) gets the library and returns plain data: classes of
results, the order of calls, names of functions, errors.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import torch as reference

import flambeau
from conformance.overriding import objects, subclasses
from conformance.overriding.classes import Asked
from conformance.side_by_side import attempt, plain


def scenarios(topic: ModuleType) -> Iterator[Any]:
    """The scenarios of a file."""
    for name, found in vars(topic).items():
        if inspect.isfunction(found) and found.__module__ == topic.__name__ and name[0] != "_":
            yield pytest.param(found, id=f"{topic.__name__.rpartition('.')[2]}-{name}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "scenario", [s for topic in (subclasses, objects) for s in scenarios(topic)]
)
def test_scenario(scenario: Callable[[Any], Any]) -> None:
    ours, theirs = (repr(plain(attempt(scenario, t))) for t in (flambeau, reference))
    assert ours == theirs


UNLIKE = {
    "native_layer_norm": "torch asks before it misses arguments",
    "linalg.solve_triangular": "torch's dummy takes a keyword by position",
    "nn.init.uniform_": "initializers are asked through the methods that they call",
    "nn.init.normal_": "the same",
    "nn.init.constant_": "the same",
    "nn.init.kaiming_uniform_": "the same",
}
"""Functions that do not ask an object, and why."""


def arguments(dummy: Callable[..., Any]) -> tuple[list[Any], dict[str, Any]]:
    """An object for each parameter that a function needs."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for parameter in inspect.signature(dummy).parameters.values():
        value = [Asked(), Asked()] if parameter.name in ("tensors", "data_list") else Asked()
        if parameter.kind is parameter.VAR_POSITIONAL:
            args += [Asked(), Asked()]
        elif parameter.kind is parameter.VAR_KEYWORD or parameter.default is not parameter.empty:
            continue
        elif parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[parameter.name] = value
        else:
            args.append(value)
    return args, kwargs


def found(name: str) -> Any:
    """A function of flambeau by its dotted name; None if it has none."""
    holder: Any = flambeau
    for part in name.split("."):
        holder = getattr(holder, part, None)
    return holder


def test_every_function_asks_objects() -> None:
    asked, silent = 0, []
    for function, dummy in reference.overrides.get_testing_overrides().items():
        name = str(reference.overrides.resolve_name(function)).removeprefix("torch.")
        ours = found(name.removeprefix("functional."))
        if ours is None or name.startswith("Tensor.") or name in UNLIKE:
            continue
        args, kwargs = arguments(dummy)
        if attempt(ours, *args, **kwargs) == Asked.answer:
            asked += 1
        else:
            silent.append(name)
    assert silent == []
    assert asked > 600
