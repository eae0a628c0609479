"""Python objects that programs reach through names: modules, functions, classes, constants."""

from __future__ import annotations

import builtins
import enum
import inspect
import sys
import types
from collections.abc import Sequence
from functools import partial
from typing import Any

from flambeau.jit.frontend.builtins import builtin_name, operator_of, special_form
from flambeau.jit.frontend.constants import constant_of
from flambeau.jit.frontend.partials import Partial
from flambeau.jit.frontend.simple_value import BuiltinFunction, FunctionValue
from flambeau.jit.frontend.special_forms import ExceptionClass, SpecialForm
from flambeau.jit.frontend.sugar import SugaredValue, sugar_handler, sugar_of
from flambeau.jit.ir.graph import Graph, Value
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.operators import table
from flambeau.jit.operators.matching import Argument


class PythonValue(SugaredValue):
    """A Python object that means nothing to programs: every use of it is an error."""

    def __init__(self, value: Any) -> None:
        self.value = value

    @property
    def kind(self) -> str:  # type: ignore[override]
        """What errors call it."""
        if isinstance(self.value, type):
            return f"Python {type(self.value).__name__}"
        return f"python value of type '{type(self.value).__name__}'"

    def as_value(self, graph: Graph, where: SourceRange) -> Value:
        if isinstance(self.value, type):
            raise ScriptError(f"{self.kind} cannot be used as a value", where)
        raise ScriptError(
            f"{self.kind} cannot be used as a value. Perhaps it is a closed over global variable? "
            "If so, please consider passing it in as an argument or use a local variable instead.",
            where,
        )

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        found = inspect.getattr_static(self.value, name, None)
        if found is None and not hasattr(self.value, name):
            raise ScriptError(f"object has no attribute {name}", where)
        return sugar_of(getattr(self.value, name), where)

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        if isinstance(self.value, types.BuiltinFunctionType):
            raise ScriptError(
                f"Python builtin {self.value!r} is currently not supported in Torchscript", where
            )
        raise ScriptError(f"cannot call a {self.kind}", where)


class PythonModule(SugaredValue):
    """A Python module: its attributes are what the objects in it mean."""

    kind = "module"

    def __init__(self, module: types.ModuleType) -> None:
        self.module = module

    def as_value(self, graph: Graph, where: SourceRange) -> Value:
        raise ScriptError(
            "python value of type 'module' cannot be used as a value. Perhaps it is a closed over "
            "global variable? If so, please consider passing it in as an argument or use a local "
            "variable instead.", where
        )  # fmt: skip

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        if name == "ops" and self.module is sys.modules["flambeau"]:
            return OperatorNamespaces()
        missing = object()
        found = getattr(self.module, name, missing)
        if found is missing:
            operator = operator_of(self.module, name)
            if operator is not None:
                return BuiltinFunction(operator)
            raise ScriptError(f"object has no attribute {name}", where)
        return attribute_sugar(found, where)

    def has_attr(self, graph: Graph, where: SourceRange, name: str) -> bool:
        return hasattr(self.module, name)


class OperatorNamespaces(SugaredValue):
    """`torch.ops`: `torch.ops.aten.relu` is the operator `aten::relu`. namespace: `aten`."""

    kind = "module"

    def __init__(self, namespace: str = "") -> None:
        self.namespace = namespace

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        if not self.namespace:
            return OperatorNamespaces(name)
        if not table.overloads(f"{self.namespace}::{name}"):
            raise ScriptError(f"object has no attribute {name}", where)
        return BuiltinFunction(f"{self.namespace}::{name}")


def attribute_sugar(value: Any, where: SourceRange) -> SugaredValue:
    """What an object in a Python module means: there, numbers and the like are constants, while
    the program's own globals may not be.
    """
    return constant_of(value) or sugar_of(value, where)


@sugar_handler
def _modules(value: Any, where: SourceRange) -> SugaredValue | None:
    return PythonModule(value) if isinstance(value, types.ModuleType) else None


@sugar_handler
def _partials(value: Any, where: SourceRange) -> SugaredValue | None:
    return Partial(value) if isinstance(value, partial) else None


@sugar_handler
def _compiled(value: Any, where: SourceRange) -> SugaredValue | None:
    """What `torch.jit.script` has compiled."""
    from flambeau.jit.ir.function import Function

    function = value if isinstance(value, Function) else getattr(value, "_function", None)
    return FunctionValue(function) if isinstance(function, Function) else None


@sugar_handler
def _exceptions(value: Any, where: SourceRange) -> SugaredValue | None:
    if not inspect.isclass(value) or not issubclass(value, BaseException):
        return None
    home = "builtins" if value.__module__ == builtins.__name__ else value.__module__
    if home == "builtins":
        return ExceptionClass(f"builtins.{value.__name__}")
    return ExceptionClass(f"__torch__.{value.__qualname__}" if home == "__main__" else (
        f"__torch__.{home}.{value.__name__}"))  # fmt: skip


@sugar_handler
def _operators(value: Any, where: SourceRange) -> SugaredValue | None:
    """Functions that are operators, and those that are special forms."""
    if not callable(value) or isinstance(value, enum.Enum):
        return None
    form = special_form(value)
    if form is not None:
        return SpecialForm(form)
    name = builtin_name(value)
    return None if name is None else BuiltinFunction(name)
