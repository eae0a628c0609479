"""Methods that are declared with several signatures: `forward__0`, `forward__1`."""

from __future__ import annotations

from typing import Any

from flambeau._core.class_homes import own_module
from flambeau.jit import markers
from flambeau.jit.library.forms import form_of
from flambeau.nn import Module


def names(module: Module) -> dict[str, list[str]]:
    """The overloaded methods of a module, and the names of their variants."""
    found = dict(getattr(module, "__overloads__", {}))
    for name, declared in declarations(type(module)).items():
        found[name] = [f"{name}__{index}" for index in range(len(declared))]
    return found


def declarations(owner: type) -> dict[str, list[Any]]:
    """The declarations of overloaded methods: Python functions, or Definitions for a layer of
    flambeau. A method that overrides one with declarations has none.
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
    form = form_of(base)
    found: dict[str, list[Any]] = {} if form is None else {**form.overloads}
    start = f"{own_module(base)}.{base.__qualname__}."
    for place, declared in markers.method_overloads.items():
        name = place.removeprefix(start)
        if place.startswith(start) and name in base.__dict__ and declared:
            found.setdefault(name, declared)
    return found


def _check_implemented(owner: type, name: str, declared: list[Any]) -> None:
    function = owner.__dict__.get(name)
    if function in declared:
        raise RuntimeError(markers.missing_implementation("method", function))
