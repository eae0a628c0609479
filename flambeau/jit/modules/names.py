"""The names that programs give to Python's functions and classes."""

from __future__ import annotations

import enum
from typing import Any

from flambeau._core.nn_homes import file_in_torch


def qualified_name(obj: Any) -> str:
    """`__torch__.models.Net` for the class `models.Net`; without module for `__main__`.

    What is defined in flambeau has the name that it has in torch.
    """
    override = getattr(obj, "_jit_override_qualname", None)
    if override is not None:
        return override  # type: ignore[no-any-return]
    name = obj.name if isinstance(obj, enum.Enum) else getattr(obj, "__name__", None)
    if name is None:
        raise RuntimeError("Could not get name of python class object")
    module = obj.__module__
    if module is None:
        raise RuntimeError(
            f"Could not get qualified name for class '{name}': __module__ can't be None."
        )
    name = "_lambda" if name == "<lambda>" else name
    file = file_in_torch(module, name)
    if file is not None:
        module = f"torch.nn.modules.{file}"
    head = "__torch__" if module == "__main__" else f"__torch__.{as_torch(module)}"
    return f"{head}.{name}"


def as_torch(module: str) -> str:
    """`flambeau.nn.functional` is `torch.nn.functional`."""
    first, dot, rest = module.partition(".")
    return f"torch{dot}{rest}" if first == "flambeau" else module
