"""The dotted names by which generated code calls functions and speaks of types."""

from __future__ import annotations

import builtins
import importlib
import types
from collections.abc import Callable
from typing import Any

PUBLIC = (
    "torch.functional", "torch", "torch.nn.functional", "torch.fft", "torch.linalg",
    "torch.special", "torch.nn.init",
)  # fmt: skip
"""Namespaces in which a function of ours is looked for, whichever file defines it."""


def function_name(function: Callable[..., Any]) -> str:
    """A dotted name: `torch.add`, `_operator.mul`, `getattr`, `package.module.function`.

    Raises:
        RuntimeError: no name leads to the function.
    """
    name = getattr(function, "__name__", "")
    if hasattr(function, "_overloadpacket"):
        return f"torch.ops.{function}"
    if getattr(builtins, name, None) is function:
        return name
    if isinstance(function, types.MethodDescriptorType | types.WrapperDescriptorType):
        return f"{type_name(function.__objclass__)}.{name}"
    public = _public_name(function, name)
    if public is not None:
        return public
    module = getattr(function, "__module__", None) or _module_of(function)
    return f"{_torch_module(module)}.{name}"


def _public_name(function: Any, name: str) -> str | None:
    """`torch.x` for what is ours; its own file may be any below."""
    module = getattr(function, "__module__", None) or ""
    if not module.startswith(("flambeau", "torch")):
        return None
    for namespace in PUBLIC:
        home = importlib.import_module("flambeau" + namespace.removeprefix("torch"))
        for candidate in (name, name.removeprefix("linalg_").removeprefix("fft_")):
            if getattr(home, candidate, None) is function:
                return f"{namespace}.{candidate}"
    tensor = importlib.import_module("flambeau").Tensor
    if getattr(tensor, name, None) is function:
        return f"torch.Tensor.{name}"
    return None


def _module_of(function: Any) -> str:
    raise RuntimeError(f"cannot find module for {function}")


def _torch_module(module: str) -> str:
    return "torch" + module.removeprefix("flambeau") if module.startswith("flambeau") else module


def type_name(kind: Any) -> str:
    """A type as annotations write it: `int`, `list[int]`, `torch.Tensor`."""
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias):
        if kind.__module__ == "builtins":
            return kind.__qualname__
        return f"{_module_of_type(kind)}.{kind.__qualname__}"
    if kind is ...:
        return "..."
    if isinstance(kind, types.FunctionType):
        return kind.__name__
    return repr(kind)


def _module_of_type(kind: type) -> str:
    module = _torch_module(kind.__module__)
    top = importlib.import_module("flambeau")
    return "torch" if getattr(top, kind.__name__, None) is kind else module
