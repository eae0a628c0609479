"""Flambeau's objects under the names that PyTorch's files give them, in both directions."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core.class_homes import own_module, table
from flambeau._core.device import device
from flambeau._core.layout import Size, memory_format
from flambeau._tensor.tensor import Tensor
from flambeau.serialization.homes import public_packages
from flambeau.serialization.rebuild import REBUILD_ROWS, get_layout

PACKAGE = __name__.partition(".")[0]

# Modules that torch has renamed since it wrote files with them, and the private homes of some
# functions and classes (`gelu` in a TransformerEncoderLayer, `Generator`).
RENAMED_MODULES = {
    "torch.tensor": "torch._tensor",
    "torch._C": "torch",
    "torch._C._nn": "torch.nn.functional",
}
# The class whose attributes torch's functions are: files say getattr(<this class>, "relu").
FUNCTIONS_CLASS = ("torch._C", "_VariableFunctionsClass")


def _split(full_name: str) -> tuple[str, str]:
    module, _, name = full_name.rpartition(".")
    return module, name


KNOWN_NAMES: dict[int, tuple[str, str]] = {
    id(Tensor): ("torch", "Tensor"),
    id(Size): ("torch", "Size"),
    id(device): ("torch", "device"),
    id(dt.dtype): ("torch", "dtype"),
    id(get_layout): ("torch.serialization", "_get_layout"),
    **{id(entry): ("torch", entry.name) for entry in dt.ALL},
    **{id(entry): ("torch", entry.name) for entry in memory_format.table.values()},
    **{id(row.value): _split(name) for name, row in REBUILD_ROWS.items()},
}


def torch_name(value: Any) -> tuple[str, str] | None:
    """The module and name that files use for one of our classes or functions; None for others.

    An object of a private module goes by the shortest public package that exports it, which is a
    name that torch knows as well.
    """
    known = KNOWN_NAMES.get(id(value))
    if known is not None:
        return known
    module = own_module(value) if isinstance(value, type) else getattr(value, "__module__", None)
    module = module or ""
    root = module.partition(".")[0]
    if root not in (PACKAGE, "torch"):
        return None
    name = getattr(value, "__qualname__", None) or value.__name__
    if root == "torch":  # what operators say of themselves, and what is torch's own
        ours = _part(sys.modules.get(PACKAGE + module[len(root) :]), name)
        return (module, name) if ours is value else None
    if name == "Parameter" and issubclass(value, Tensor):
        return "torch.nn.parameter", name
    home = table().get(module, {}).get(name)
    if home is not None:
        return home, name
    parts = module.split(".")
    for length in range(1, len(parts)):
        package = ".".join(parts[:length])
        if _part(sys.modules.get(package), name) is value:
            return _as_torch(package), name
    return _as_torch(module), name


def _as_torch(module: str) -> str:
    return "torch" + module[len(PACKAGE) :]


def resolve(module: str, name: str) -> Any:
    """Our object for a name of torch's, imported if need be. Raises AttributeError."""
    if (module, name) == FUNCTIONS_CLASS:
        return importlib.import_module(PACKAGE)
    module = RENAMED_MODULES.get(module, module)
    for candidate in (module, *public_packages(module)):
        found = _attribute(candidate, name)
        if found is not None:
            return found
    raise AttributeError(f"Can't get attribute '{name}' on module '{module}': flambeau lacks it")


def _attribute(module: str, name: str) -> Any:
    ours = PACKAGE + module[len("torch") :]
    try:
        found = importlib.import_module(ours)
    except ModuleNotFoundError as error:
        if error.name is None or not ours.startswith(error.name):
            raise
        return None
    return _part(found, name)


def _part(module: Any, name: str) -> Any:
    """What a module has under a name, which may be dotted; None if there is nothing."""
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
