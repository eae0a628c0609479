"""Compiling functions and methods: where their source and names come from."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable
from typing import Any

from flambeau.jit import markers, state
from flambeau.jit.errors import warn_of_age
from flambeau.jit.frontend.source import Definition, definition_of
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import PYTHON_UNIT, CompilationUnit, Function
from flambeau.jit.ir.graph import Value
from flambeau.jit.ir.source import Source
from flambeau.jit.modules import handlers  # noqa: F401  it says what Python objects mean
from flambeau.jit.modules.concrete import ConcreteType, concrete_of_script
from flambeau.jit.modules.module_values import ModuleValue
from flambeau.jit.modules.names import qualified_name
from flambeau.jit.modules.resolvers import PythonScope, scope_of
from flambeau.jit.modules.script_module import ScriptModule

Scope = Any
"""A resolver: what names mean, see `frontend.compiler.Resolver`."""


# ---- functions


def function_of(obj: Any, example_inputs: Any = None) -> Function:
    """The compiled function of a Python function; compiled when it is first used."""
    definition = definition_of(obj)
    if example_inputs:
        from flambeau.jit.modules.examples import annotated

        definition = annotated(definition, obj, example_inputs)
    return function_from(definition, scope_of(obj), qualified_name(obj), original=obj)


def function_from(
    definition: Definition,
    scope: Scope,
    name: str,
    unit: CompilationUnit = PYTHON_UNIT,
    original: Any = None,
) -> Function:
    """A function of a unit, compiled when it is first used. name: the qualified name."""
    name = unit.mangle(name)
    define = functools.partial(_define, definition=definition, scope=scope, original=original)
    function = Function(name, unit, define=define)
    function.doc = ast.get_docstring(definition.node) or ""
    return unit.add_function(function)


def _define(function: Function, *, definition: Definition, scope: Scope, original: Any = None,
            owner: T.ClassType | None = None, self_value: Any = None) -> None:  # fmt: skip
    from flambeau.jit.frontend.definitions import compile_function

    compile_function(
        function, definition.node, definition.source, scope, self_value, owner,
        defaults=defaults_of(original),
    )  # fmt: skip


def defaults_of(function: Any) -> dict[str, Any] | None:
    """The defaults of a Python function's parameters, as they were when it was defined."""
    if not inspect.isfunction(getattr(function, "__func__", function)):
        return None
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


# ---- methods


def add_method(owner: T.ClassType, definition: Definition, scope: Scope, original: Any = None,
               self_value: Any = None) -> Function:  # fmt: skip
    """Add a method to a class; it is compiled when it is first used."""
    name = definition.node.name
    define = functools.partial(
        _define, definition=definition, scope=scope, original=original, owner=owner,
        self_value=self_value,
    )  # fmt: skip
    unit = owner.unit
    assert unit is not None
    method = Function(f"{owner.qualified_name}.{name}", unit, define=define)
    method.doc = ast.get_docstring(definition.node) or ""
    owner.methods[name] = method
    return method


class ModuleSelf(SugaredValue):
    """What the first parameter of a method of a module means."""

    kind = "module"

    def __init__(self, concrete: ConcreteType) -> None:
        self.concrete = concrete

    def bound_to(self, value: Value) -> ModuleValue:
        """The module, once the graph has a value for it."""
        return ModuleValue(value, self.concrete)


class MethodSource:
    """A method's definition, and where its names are looked for."""

    def __init__(self, definition: Definition, scope: Scope, original: Any = None) -> None:
        self.definition = definition
        self.scope = scope
        self.original = original


def method_source(owner: type, name: str) -> MethodSource | None:
    """The source of a method of a module's class."""
    for base in owner.__mro__:
        function = base.__dict__.get(name)
        if function is not None:
            return source_of(function) if inspect.isfunction(function) else None
    return None


def source_of(function: Any, name: str = "") -> MethodSource:
    """The source of a Python function that is used as a method, perhaps under another name."""
    function = inspect.unwrap(function)
    definition = definition_of(function)
    if function.__module__.startswith("flambeau."):
        from flambeau.jit.modules.row_programs import without_eager

        _forget_any(definition.node)
        definition = without_eager(definition)
    if name and definition.node.name != name:
        from flambeau.jit.modules.classes import renamed

        definition = renamed(definition, name)
    return MethodSource(definition, scope_of(function), function)


def _forget_any(node: ast.FunctionDef) -> None:
    """Take `Any` away from a method of a layer: it says that a tensor, or what follows from the
    body, is not worth spelling out, where to programs it is a type.
    """
    for argument in node.args.args:
        if getattr(argument.annotation, "id", "") == "Any":
            argument.annotation = ast.copy_location(ast.Name("Tensor", ast.Load()), argument)
    if getattr(node.returns, "id", "") == "Any":
        node.returns = None


def compile_method(concrete: ConcreteType, found: MethodSource) -> Function:
    """Add a method to a module's class and compile it now; a method that calls itself is left to
    the caller's error.
    """
    method = add_method(
        concrete.type, found.definition, found.scope, found.original, ModuleSelf(concrete)
    )
    try:
        method.ensure_defined()
    except BaseException:
        concrete.type.methods.pop(found.definition.node.name, None)
        raise
    return method


# ---- text


def define(module: ScriptModule, text: str, frame: Any) -> None:
    """Add the methods of a text to a compiled module, or keep them until it is compiled."""
    scopes = () if frame is None else (frame.f_locals, frame.f_globals)
    scope = PythonScope(*scopes)
    source = Source(textwrap.dedent(text), "<string>")
    for node in ast.parse(source.text).body:
        if not isinstance(node, ast.FunctionDef):
            raise RuntimeError("expected a function definition")
        found = MethodSource(Definition(node, source), scope)
        if "_type" in module.__dict__:
            compile_method(concrete_of_script(module), found)
        else:
            module.__dict__.setdefault("_defined", []).append(found)


# ---- ScriptModule classes


class ScriptMethodStub:
    """A method marked with `script_method`, until its class is compiled."""

    def __init__(self, function: Callable[..., Any], scope: dict[str, Any]) -> None:
        self.function = function
        self.scope = scope
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__

    def source(self) -> MethodSource:
        """The method's source and names."""
        return MethodSource(
            definition_of(self.function), scope_of(self.function, self.scope), self.function
        )

    def __get__(self, module: Any, owner: type) -> Any:
        if module is None or "_type" not in module.__dict__:
            return self
        return module.__getattr__(self.__name__)


def script_method(fn: Callable[..., Any]) -> Any:
    """Mark a method of a `ScriptModule` class to be compiled once `__init__` is done."""
    if not state.enabled:
        return fn
    warn_of_age("torch.jit.script_method")
    frame = sys._getframe(2) if sys._getframe(1).f_back is not None else sys._getframe(1)
    return ScriptMethodStub(fn, {**frame.f_globals, **frame.f_locals})


def compile_in_place(module: ScriptModule) -> None:
    """Make an instance of a ScriptModule class a compiled module: its submodules are compiled,
    then its methods that are marked.
    """
    from flambeau.jit.modules.recursive import turn_into_script

    defined = module.__dict__.pop("_defined", [])
    stubs = {}
    for base in reversed(type(module).__mro__):
        for name, item in sorted(vars(base).items()):
            if isinstance(item, ScriptMethodStub):
                stubs[name] = item.source()
    turn_into_script(module, [*stubs.values(), *defined], share=not defined)


def is_exported(item: Any) -> bool:
    """Whether a method is marked with `export`."""
    return markers.modifier_of(item) == markers.EXPORT
