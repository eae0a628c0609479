"""Names of features that flambeau has not, where libraries import them before they know.

A class can be annotated with, derived from and asked for by `isinstance`; nothing is an instance of
it. Who makes an instance or calls a function gets the error that names it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import Enum
from types import ModuleType
from typing import Any, NoReturn

from flambeau._core.missing import (
    NotImplementedInFlambeau,
    as_torch_name,
    missing,
    not_implemented_text,
)


def refuse(dotted: str) -> NoReturn:
    """Raise NotImplementedInFlambeau for a name such as `torch.distributed.fsdp.fully_shard`."""
    raise NotImplementedInFlambeau(not_implemented_text(dotted), name=dotted.rpartition(".")[2])


class AbsentClass(type):
    """The class of classes without instances. They have no attributes that could be used."""

    absent: str
    """The dotted name in PyTorch, also of classes that libraries derive."""

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(cls.absent)

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        refuse(f"{cls.absent}.{name}")


def absent_class(dotted: str) -> AbsentClass:
    """A class of PyTorch without instances."""
    module, _, name = dotted.rpartition(".")
    doc = f"`{dotted}`: not implemented. It can be asked for by `isinstance`; nothing is one."
    return AbsentClass(name, (), {"__module__": module, "absent": dotted, "__doc__": doc})


def absent_function(dotted: str) -> Any:
    """A function of PyTorch that says, when called, that it is not here."""

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        refuse(dotted)

    function.__module__, _, function.__name__ = dotted.rpartition(".")
    function.__qualname__ = function.__name__
    function.__doc__ = "Not implemented: it raises NotImplementedInFlambeau."
    return function


def absent_module(dotted: str, names: str, enums: Mapping[str, str] | None = None) -> ModuleType:
    """A module of PyTorch below `torch`, whose names say that they are not here.

    It is put into `sys.modules`, and its names are made when they are first asked for: classes
    where they begin with a capital, functions otherwise.

    Args:
        dotted: such as `flambeau.distributed.fsdp`.
        names: separated by blanks.
        enums: choices that are compared and handed on: name, and its members.
    """
    there, choices = frozenset(names.split()), enums or {}
    module = ModuleType(dotted, f"`{as_torch_name(dotted)}`: not implemented.")
    module.__path__ = []  # modules below it are found in sys.modules

    def find(name: str) -> Any:
        if name in choices:
            made = _choices(dotted, name, choices[name])
        elif name in there:
            made = _absent(f"{as_torch_name(dotted)}.{name}")
        else:
            return missing(dotted, name)
        setattr(module, name, made)
        return made

    module.__getattr__ = find  # type: ignore[method-assign]
    sys.modules[dotted] = module
    parent, _, last = dotted.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, module)
    return module


def _absent(dotted: str) -> Any:
    is_class = dotted.rpartition(".")[2].lstrip("_")[:1].isupper()
    return absent_class(dotted) if is_class else absent_function(dotted)


def _choices(module: str, name: str, members: str) -> Any:
    make: Any = Enum
    return make(name, members, module=as_torch_name(module))
