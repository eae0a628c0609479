"""`@torch.jit.interface`: what a class or module must have to stand in a place."""

from __future__ import annotations

import inspect
import sys
import warnings
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import PYTHON_UNIT
from flambeau.jit.modules.class_source import class_source
from flambeau.jit.modules.names import qualified_name
from flambeau.nn import Module

known: WeakKeyDictionary[type, T.InterfaceType] = WeakKeyDictionary()
C = TypeVar("C", bound=type)


def interface(obj: C) -> C:
    """Declare an interface: a class whose methods have annotations and no bodies.

    Scripts may use it as a type. A class that inherits from Module is an interface of modules: a
    submodule that is annotated with it may be replaced, and elements of a ModuleList may be chosen
    by an index that is known at run time only.

    Raises:
        RuntimeError: it is no class, or inherits from another one.
    """
    warnings.warn(
        "`torch.jit.interface` is deprecated. Please use `torch.compile` instead.",
        DeprecationWarning,
        stacklevel=2,
    )
    if not inspect.isclass(obj):
        raise RuntimeError("interface must be applied to a class")
    is_module = issubclass(obj, Module) and obj.__bases__ == (Module,)
    if not is_module and len(obj.mro()) > 2:
        raise RuntimeError(
            "TorchScript interface does not support inheritance yet. "
            "Please directly inherit from 'object' or 'nn.Module'."
        )
    frame = sys._getframe(1)
    scope = {**frame.f_globals, **frame.f_locals}
    made = _declared(obj, is_module, scope)
    obj.__torch_script_interface__ = made.qualified_name  # type: ignore[attr-defined]
    return obj


def _declared(owner: type, is_module: bool, scope: dict[str, Any]) -> T.InterfaceType:
    from flambeau.jit.modules.resolvers import scope_of_interface
    from flambeau.jit.modules.signatures import declared_schema

    name = PYTHON_UNIT.mangle(qualified_name(owner))
    made = known[owner] = T.InterfaceType(name, is_module=is_module)
    PYTHON_UNIT.types[name] = made
    names = scope_of_interface(made, owner, scope)
    for definition in class_source(owner).methods:
        made.methods[definition.node.name] = declared_schema(definition, names, made)
    return made


def interface_type(owner: Any) -> T.InterfaceType | None:
    """The type of a class that has been declared an interface."""
    return known.get(owner)
