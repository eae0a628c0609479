"""Methods that are declared with several signatures: `forward__0`, `forward__1`."""

from __future__ import annotations

from typing import Any

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
    seen = set()
    for base in owner.__mro__:
        form = form_of(base)
        own = {} if form is None else form.overloads
        place = f"{base.__module__}.{base.__qualname__}"
        for name in [*base.__dict__, *own]:
            declared = own.get(name) or markers.method_overloads.get(f"{place}.{name}")
            if declared and name not in seen:
                found[name] = declared
                _check_implemented(base, name, declared)
            seen.add(name)
    return found


def _check_implemented(owner: type, name: str, declared: list[Any]) -> None:
    function = owner.__dict__.get(name)
    if function in declared:
        raise RuntimeError(markers.missing_implementation("method", function))
