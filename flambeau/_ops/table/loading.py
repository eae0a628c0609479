"""Modules of rows are imported when one of their names is first used.

`index.py` says which module holds which public name and which attribute of Tensor; it is written
by `python -m flambeau._ops.table.write_index`. Importing all modules would take longer than NumPy's
import.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from flambeau._core import forks
from flambeau._core.missing import MissingAttribute
from flambeau._ops.table import index
from flambeau._tensor.tensor import Tensor, constructors, on_build

PACKAGE = "flambeau._ops"
_modules_of: dict[str, list[str]] = {}
for _module, _names in index.NAMES.items():
    for _name in _names.split():
        _modules_of.setdefault(_name, []).append(_module)
_loaded: set[str] = set()


def load(name: str) -> None:
    """Import the modules that hold rows of a public name; of an unknown name, all modules."""
    modules = _modules_of.get(name)
    if modules is None:
        if "all" not in _loaded:
            load_all()
        return
    for module in modules:
        _import(module)


def load_all() -> None:
    """Import every module of rows."""
    try:
        _loaded.add("all")  # some ask for names of others
        for module in index.NAMES:
            _import(module)
    except BaseException:
        _loaded.discard("all")
        raise


def _import(module: str) -> None:
    """Import a module of rows. Not while another thread forks: Python's lock of the module would
    stay locked in the child."""
    with forks.held_off():
        importlib.import_module(f"{PACKAGE}.{module}")


def module_of_rows(name: str) -> str:
    """A module's name as the index has it, "conv.convolution"; "" for one that can have no rows."""
    short = name.removeprefix(f"{PACKAGE}.")
    return "" if short == name or short.startswith("table.") else short


def modules_of(name: str) -> list[str]:
    """The modules that hold rows of a public name: their package is its family."""
    return _modules_of.get(name, [])


def is_indexed(name: str) -> bool:
    """Whether the index has a public name."""
    return name in _modules_of


def indexed_names() -> Iterator[str]:
    """All public names in the index."""
    return iter(_modules_of)


announced: dict[str, Any] = {}
"""Functions that are there, by name."""


def announce(name: str, function: Any) -> None:
    """Tell who listens that a function is there; of methods, `Tensor.relu`, the class tells."""
    announced[name] = function
    for listener in on_build:
        listener(name, function)


# ---- attributes of Tensor


class LazyAttribute:
    """Stands in the class for an attribute whose module is not imported yet."""

    def __init__(self, name: str, module: str) -> None:
        self.name = name
        self.module = module

    def resolve(self) -> Any:
        """Import the module; the real attribute then takes this one's place."""
        _import(self.module)
        found = Tensor.__dict__.get(self.name)
        if found is self:
            from flambeau._ops.table.namespace import method_of

            found = method_of(self.name)
            setattr(Tensor, self.name, found)
        return found

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        found = self.resolve()
        return found.__get__(instance, owner) if hasattr(found, "__get__") else found


class LazyProperty(LazyAttribute):
    """The same for a property that can be set."""

    def __set__(self, instance: Any, value: Any) -> None:
        self.resolve()
        setattr(instance, self.name, value)


def attach_all() -> None:
    """Put a stand-in on Tensor for every attribute of the index, and for what PyTorch's have."""
    settable = set(index.SETTABLE.split())
    for module, names in index.ATTRIBUTES.items():
        for name in names.split():
            if name not in Tensor.__dict__:
                kind = LazyProperty if name in settable else LazyAttribute
                setattr(Tensor, name, kind(name, module))
    for name in index.MISSING.split():
        if name not in Tensor.__dict__:
            setattr(Tensor, name, MissingAttribute(name))
    for module, names in index.PROVIDES.items():
        for name in names.split():
            constructors.setdefault(name, _provider(name, module))


def _provider(name: str, module: str) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        _import(module)
        return constructors[name](*args, **kwargs)

    return call
