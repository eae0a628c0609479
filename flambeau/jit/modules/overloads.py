"""Methods that are declared with several signatures: `forward__0`, `forward__1`."""

from __future__ import annotations

import inspect
import types
import typing
from typing import Any

from flambeau._core.class_homes import own_module
from flambeau.jit import markers
from flambeau.nn import Module


def names(module: Module) -> dict[str, list[str]]:
    """The overloaded methods of a module, and the names of their variants."""
    found = dict(getattr(module, "__overloads__", {}))
    for name, declared in declarations(type(module)).items():
        found[name] = [f"{name}__{index}" for index in range(len(declared))]
    return found


def declarations(owner: type) -> dict[str, list[Any]]:
    """The declarations of overloaded methods. A method that overrides one with declarations has
    none.
    """
    found: dict[str, list[Any]] = {}
    before: list[type] = []
    for base in owner.__mro__:
        for name, declared in _declared_in(base).items():
            if not any(name in other.__dict__ for other in before):
                found[name] = declared
                _check_implemented(base, name, declared)
        before.append(base)
    return found


def _declared_in(base: type) -> dict[str, list[Any]]:
    module = own_module(base)
    found = _of_layer(base) if module.startswith("flambeau.nn") else {}
    start = f"{module}.{base.__qualname__}."
    for place, declared in markers.method_overloads.items():
        name = place.removeprefix(start)
        if place.startswith(start) and name in base.__dict__ and declared:
            found.setdefault(name, declared)
    return found


def _of_layer(base: type) -> dict[str, list[Any]]:
    """What a layer of flambeau declares as type checkers read it, by `typing.overload`."""
    found = {}
    for name, item in vars(base).items():
        if inspect.isfunction(item):
            place: Any = types.SimpleNamespace(
                __module__=base.__module__, __qualname__=f"{base.__qualname__}.{name}"
            )
            found[name] = list(typing.get_overloads(place))
    return {name: declared for name, declared in found.items() if declared}


def _check_implemented(owner: type, name: str, declared: list[Any]) -> None:
    function = owner.__dict__.get(name)
    if function in declared:
        raise RuntimeError(markers.missing_implementation("method", function))
