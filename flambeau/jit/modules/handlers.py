"""What functions, classes and modules of Python mean to programs that name them."""

from __future__ import annotations

import enum
import inspect
import sys
from typing import Any

from flambeau._core.class_homes import own_module
from flambeau._ops.table.namespace import Namespace
from flambeau._ops.table.op import Op
from flambeau.jit import markers
from flambeau.jit.frontend.builtins import PROGRAMS, RENAMED, builtin_name, is_functional
from flambeau.jit.frontend.simple_value import BuiltinFunction, FunctionValue
from flambeau.jit.frontend.sugar import SugaredValue, sugar_handler
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import Function
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.modules import row_programs
from flambeau.jit.modules.class_values import (
    ClassValue,
    EnumClass,
    EnumMember,
    NamedTupleClass,
)
from flambeau.jit.modules.functions import Compiled, ScriptMethod
from flambeau.jit.modules.names import as_torch
from flambeau.jit.modules.script_module import ScriptModule
from flambeau.jit.operators import table
from flambeau.nn import Module


def operator(name: str) -> SugaredValue | None:
    """The operator that a function of `torch` or `torch.nn.functional` is."""
    kind = RENAMED.get(f"aten::{name}", f"aten::{name}")
    return BuiltinFunction(kind) if table.overloads(kind) else None


def class_sugar(kind: T.Type) -> SugaredValue:
    """What the name of a class means."""
    assert isinstance(kind, T.ClassType)
    return ClassValue(kind)


@sugar_handler
def python_function(value: Any, where: SourceRange) -> SugaredValue | None:
    """Functions: those of the library, those compiled before, those to be compiled now."""
    if isinstance(value, Function):
        return FunctionValue(value)
    if isinstance(value, Compiled) and not isinstance(value, ScriptMethod):
        return FunctionValue(value._function)
    if not inspect.isfunction(value):
        return None
    place, name = as_torch(value.__module__ or ""), value.__name__
    if name in PROGRAMS and getattr(sys.modules["flambeau"], name) is value:
        return row_programs.program(name)
    if place.partition(".")[0] in ("torch", "flambeau"):
        return _of_flambeau(value, place, name)
    if markers.is_ignored(value):
        from flambeau.jit.modules.python_calls import IgnoredFunction

        return IgnoredFunction(value)
    declared = markers.function_overloads.get(markers.place_of(value))
    if declared:
        return FunctionValue(*overloaded(value, declared))
    from flambeau.jit.modules.scripting import compiled_function

    return FunctionValue(compiled_function(value)._function)


ASKED = frozenset(("is_compiling", "is_dynamo_compiling"))
"""Questions of `torch.compiler` that programs may ask, too."""


def _of_flambeau(value: Any, place: str, name: str) -> SugaredValue | None:
    """A function of flambeau's own: the body of a row, what bodies call, or an operator."""
    if value is markers.is_tracing or (place == "torch.compiler" and name in ASKED):
        return FunctionValue(row_programs.helper(value))
    if place == "torch.nn.functional" and is_functional(name):
        return operator(name)
    if place == "torch.nn.functional":
        return row_programs.program(f"nn.functional.{name}") or operator(name)
    if place.startswith(("torch._ops", "torch._core")) and builtin_name(value) is None:
        return FunctionValue(row_programs.helper(value))
    if place.startswith("torch.nn.layers"):  # what layers share is a program as they are
        return FunctionValue(row_programs.helper(value))
    return operator(name) if place == "torch" else None


@sugar_handler
def rows(value: Any, where: SourceRange) -> SugaredValue | None:
    """Rows, and `ops`, by which our own Python calls operators."""
    if isinstance(value, Op):
        return row_programs.Row(value)
    return row_programs.RowNames() if isinstance(value, Namespace) else None


_overloaded: dict[Any, tuple[Function, ...]] = {}


def overloaded(value: Any, declared: list[Any]) -> tuple[Function, ...]:
    """The variants of a function that has several declarations."""
    if value in declared:
        raise RuntimeError(markers.missing_implementation("function", value))
    if value not in _overloaded:
        from flambeau.jit.frontend.source import definition_of
        from flambeau.jit.modules.methods import function_from
        from flambeau.jit.modules.names import qualified_name
        from flambeau.jit.modules.resolvers import scope_of
        from flambeau.jit.modules.signatures import with_signature

        body, scope = definition_of(value), scope_of(value)
        stubs = [with_signature(body, definition_of(d), value.__name__) for d in declared]
        name = qualified_name(value)
        _overloaded[value] = tuple(function_from(s, scope, name, original=value) for s in stubs)
    return _overloaded[value]


@sugar_handler
def python_class(value: Any, where: SourceRange) -> SugaredValue | None:
    """Classes: enumerations, NamedTuples, and classes that programs can make objects of."""
    if isinstance(value, enum.Enum):
        return EnumMember(value)
    if not inspect.isclass(value):
        return None
    if issubclass(value, enum.Enum):
        return EnumClass(value)
    if issubclass(value, tuple) and hasattr(value, "_fields"):
        from flambeau.jit.modules.named_tuples import named_tuple_type

        return NamedTupleClass(named_tuple_type(value))
    from flambeau.jit.modules.classes import can_be_compiled, class_type_of, known_class
    from flambeau.jit.modules.contexts import scripted_form

    form = scripted_form(value)
    known = known_class(form)
    if known is None and form is not value:
        known = class_type_of(form, {"torch": sys.modules["flambeau"]})
    if known is None and not own_module(value).startswith("flambeau") and can_be_compiled(value):
        known = class_type_of(value)
    name = str(value.__name__)
    if known is None and getattr(sys.modules["flambeau"], name, None) is value:
        return BuiltinFunction(f"aten::{name}")  # torch looks for an operator of the name
    if known is not None:
        return ClassValue(known)
    from flambeau.jit.modules.python_calls import PythonClass

    return None if issubclass(value, BaseException) else PythonClass(value)


@sugar_handler
def python_module(value: Any, where: SourceRange) -> SugaredValue | None:
    """Modules that are no submodules: they stay Python, unless they are compiled."""
    if isinstance(value, ScriptModule):
        raise ScriptError("Cannot call a ScriptModule that is not a submodule of the caller", where)
    if not isinstance(value, Module):
        return None
    from flambeau.jit.modules.python_calls import PythonCallable

    return PythonCallable(value)
