"""Where objects come from: this Python, packages, or several of these in turn."""

from __future__ import annotations

import importlib
import pickle
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from operator import attrgetter
from types import ModuleType
from typing import Any

from flambeau.package._mangling import demangle, get_mangle_prefix, is_mangled
from flambeau.serialization.names import torch_name

PACKAGE = __name__.partition(".")[0]
HERE = "the current Python environment"
whichmodule: Callable[[Any, str], str] = pickle.whichmodule  # type: ignore[attr-defined]


class ObjNotFoundError(Exception):
    """An importer has no object of the name that an object goes by.

    >>> import flambeau as torch
    >>> issubclass(torch.package.ObjNotFoundError, Exception)
    True
    """


class ObjMismatchError(Exception):
    """An importer has another object under the name that an object goes by.

    >>> import flambeau as torch
    >>> issubclass(torch.package.ObjMismatchError, Exception)
    True
    """


class Importer(ABC):
    """Finds modules by name, and names of objects.

    >>> import flambeau as torch
    >>> torch.package.sys_importer.get_name(torch.nn.Linear)
    ('torch.nn.modules.linear', 'Linear')
    """

    modules: dict[str, ModuleType]

    @abstractmethod
    def import_module(self, module_name: str) -> ModuleType:
        """Import a module."""

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        """The module and the name under which this importer has `obj`.

        Raises:
            ObjNotFoundError: there is nothing of its name.
            ObjMismatchError: there is something else.
        """
        name = name or getattr(obj, "__qualname__", None) or obj.__name__
        assert name is not None
        original = self.whichmodule(obj, name)
        module_name = demangle(original)
        try:
            found = attrgetter(name)(self.import_module(module_name))
        except (ImportError, KeyError, AttributeError):
            raise ObjNotFoundError(f"{obj} was not found as {original}.{name}") from None
        if found is obj:
            return module_name, name
        raise ObjMismatchError(_mismatch(original, self.whichmodule(found, name)))

    def whichmodule(self, obj: Any, name: str) -> str:
        """The name of the module that an object is from."""
        module = getattr(obj, "__module__", None)
        if module is not None:
            return str(module)
        for module_name, module in self.modules.items():
            if module_name != "__main__" and getattr(module, name, None) is obj:
                return module_name
        return "__main__"


def _mismatch(original: str, found: str) -> str:
    def place(module: str) -> tuple[str, str]:
        if is_mangled(module):
            prefix = get_mangle_prefix(module)
            return prefix, f"the importer for {prefix}"
        return HERE, "'sys_importer'"

    (origin, first), (other, second) = place(original), place(found)
    return (
        f"\n\nThe object provided is from '{original}', which is coming from {origin}."
        f"\nHowever, when we import '{found}', it's coming from {other}."
        f"\nTo fix this, make sure this 'PackageExporter's importer lists {first} before {second}."
    )


class _SysImporter(Importer):
    """Python's own imports; `torch` is this library."""

    def import_module(self, module_name: str) -> ModuleType:
        """Import a module."""
        return import_here(module_name)

    def whichmodule(self, obj: Any, name: str) -> str:
        """The name of the module that an object is from: of ours, what PyTorch calls it."""
        known = torch_name(obj)
        return known[0] if known is not None else whichmodule(obj, name)


def import_here(module_name: str) -> ModuleType:
    """Import a module of this Python; names below `torch` lead to this library.

    >>> import flambeau as torch
    >>> from flambeau.package.importer import import_here
    >>> import_here("torch.nn") is torch.nn
    True
    """
    root, dot, rest = module_name.partition(".")
    return importlib.import_module(f"{PACKAGE}{dot}{rest}" if root == "torch" else module_name)


sys_importer = _SysImporter()


class OrderedImporter(Importer):
    """Several importers, of which the first that knows a name answers.

    Args:
        args: the importers.

    >>> import flambeau as torch
    >>> both = torch.package.OrderedImporter(torch.package.sys_importer)
    >>> both.import_module("math").sqrt(4)
    2.0
    """

    def __init__(self, *args: Importer) -> None:
        self._importers = list(args)

    def import_module(self, module_name: str) -> ModuleType:
        """Import a module from the first importer that has it."""
        last: ModuleNotFoundError | None = None
        for importer in self._importers:
            try:
                return importer.import_module(module_name)
            except ModuleNotFoundError as error:
                last = error
        raise last or ModuleNotFoundError(module_name)

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        """The module and name that the first importer that has `obj` gives."""
        for importer in self._importers:
            try:
                return importer.get_name(obj, name)
            except (ObjNotFoundError, ObjMismatchError) as error:
                warnings.warn(
                    f"Tried to call get_name with obj {obj}, and name {name} on {importer} "
                    f"and got {error}",
                    stacklevel=2,
                )
        raise ObjNotFoundError(
            f"Could not find obj {obj} and name {name} in any of the importers {self._importers}"
        )

    def whichmodule(self, obj: Any, name: str) -> str:
        """The name of the module that an object is from, of the first importer that knows it."""
        for importer in self._importers:
            module_name = importer.whichmodule(obj, name)
            if module_name != "__main__":
                return module_name
        return "__main__"
