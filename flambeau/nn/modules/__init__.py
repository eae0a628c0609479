"""`torch.nn.modules`: the layers under the names of torch's files.

`torch.nn.modules.conv` and the others are made in memory, each a view of one or more of our files.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from flambeau import nn
from flambeau._core.class_homes import own_module
from flambeau._core.missing import missing
from flambeau._core.nn_homes import FILES, file_in_torch

_names_of = ModuleType.__dict__["__dict__"].__get__


class _Alias(ModuleType):
    """A module that looks its names up in others."""

    def __init__(self, name: str, files: tuple[str, ...]) -> None:
        super().__init__(f"{__name__}.{name}", f"The names of torch.nn.modules.{name}.")
        self._files = files

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            for file in self._files:
                source = importlib.import_module(f"flambeau.nn.{file}")
                if hasattr(source, name):
                    return getattr(source, name)
        return missing(self.__name__, name)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """All that torch's file defines, for those who look through it with `vars`."""
        own: dict[str, Any] = _names_of(self)
        if "_files" in own and "__all__" not in own:
            own["__all__"] = self._fill(own)
        return own

    def _fill(self, own: dict[str, Any]) -> list[str]:
        found = []
        home = self.__name__.rpartition(".")[2]
        for file in self._files:
            source = importlib.import_module(f"flambeau.nn.{file}")
            for name, value in list(vars(source).items()):
                if file_in_torch(_own_module(value), name) == home:
                    own.setdefault(name, value)
                    found.append(name)
        own.setdefault("Module", nn.Module)
        return [name for name in found if not name.startswith("_")]


def _own_module(value: Any) -> str:
    if isinstance(value, type):
        return own_module(value)
    return getattr(value, "__module__", None) or ""


for _name, _files in FILES.items():
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = _Alias(_name, _files)

__all__ = ["Module", *nn.HOME]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """The same classes as `torch.nn`."""
    if name in nn.HOME or name == "Module":
        return getattr(nn, name)
    return missing(__name__, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *FILES})
