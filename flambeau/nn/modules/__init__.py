"""`torch.nn.modules`: the layers under the names of torch's files.

`torch.nn.modules.conv` and the others are made in memory, each a view of one or more of our files.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from flambeau import nn
from flambeau._core.missing import missing
from flambeau._core.nn_homes import FILES


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
