"""What Python sees of compiled lists and dictionaries of modules and parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from flambeau.nn import ModuleList, Sequential


def _entries(module: Any) -> dict[str, Any]:
    """The submodules, or else the parameters."""
    return dict(module._modules or module._parameters)


def _at(module: Any, index: Any) -> Any:
    entries = _entries(module)
    if not isinstance(index, slice):
        return list(entries.values())[index]
    chosen = list(entries.values())[index]
    if module.original_name == "Sequential":
        return Sequential(*chosen)
    return ModuleList(chosen)


def _iterate_values(module: Any) -> Iterator[Any]:
    return iter(_entries(module).values())


LIST: dict[str, Callable[..., Any]] = {"__getitem__": _at, "__iter__": _iterate_values}
DICT: dict[str, Callable[..., Any]] = {
    "__getitem__": lambda module, key: _entries(module)[key],
    "__iter__": lambda module: iter(_entries(module)),
    "keys": lambda module: _entries(module).keys(),
    "values": lambda module: _entries(module).values(),
    "items": lambda module: _entries(module).items(),
}
SIZED: dict[str, Callable[..., Any]] = {"__len__": lambda module: len(_entries(module))}
METHODS = {"list": LIST, "dict": DICT, "parameter list": LIST | SIZED,
           "parameter dict": DICT | SIZED}  # fmt: skip
"""The methods of each kind of container; those that programs define come first."""


def add_methods(made: Any, kind: str, known: Any) -> None:
    """Give a compiled container its methods, except those that are compiled, `known`."""
    for name, function in METHODS.get(kind, {}).items():
        if name not in known:
            made.__dict__[name] = function.__get__(made)
