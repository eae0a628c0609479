"""Classes of Python as classes of programs, and their objects on the way in and out."""

from __future__ import annotations

import ast
import inspect
from typing import Any
from weakref import WeakKeyDictionary

from flambeau.jit import markers
from flambeau.jit.frontend.source import Definition
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import PYTHON_UNIT, Function
from flambeau.jit.ir.values import ScriptObject
from flambeau.jit.modules.class_source import ClassSource, class_source
from flambeau.jit.modules.class_values import UnderConstruction
from flambeau.jit.modules.names import qualified_name
from flambeau.nn import Module

known: WeakKeyDictionary[type, T.ClassType] = WeakKeyDictionary()
"""The class types of Python classes."""


def known_class(owner: type) -> T.ClassType | None:
    """The class type of a Python class that has been compiled."""
    return known.get(owner)


def can_be_compiled(owner: Any) -> bool:
    """Whether a class is written in Python and is no container, exception or module."""
    if markers.is_ignored(owner) or issubclass(owner, (Module, tuple, list, dict, Exception)):
        return False
    routines = [getattr(owner, name, None) for name in vars(owner)]
    return owner is not object and all(
        hasattr(routine, "__code__") for routine in routines if inspect.isroutine(routine)
    )


def class_type_of(owner: type, scope: dict[str, Any] | None = None) -> T.ClassType:
    """The class type of a Python class, whose methods are compiled now.

    scope: where the methods find names that are no globals of the class's module.

    Raises:
        RuntimeError: TorchScript does not allow the class.
    """
    found = known.get(owner)
    if found is not None:
        return found
    made = PYTHON_UNIT.add_class(qualified_name(owner))
    made.python = owner
    known[owner] = made
    try:
        _define(made, class_source(owner), scope or {})
    except BaseException:
        del known[owner]
        del PYTHON_UNIT.types[made.qualified_name]
        raise
    return made


def _define(made: T.ClassType, source: ClassSource, scope: dict[str, Any]) -> None:
    """Add properties, then methods by name; `__init__` is compiled first and declares the
    attributes.
    """
    from flambeau.jit.modules.methods import add_method
    from flambeau.jit.modules.resolvers import scope_of_class

    names = scope_of_class(made, scope)
    functions: list[Function] = []
    for name, getter, setter in source.properties:
        parts = [add_method(made, renamed(part, f"__{name}_{kind}"), names)
                 for part, kind in ((getter, "getter"), (setter, "setter"))
                 if part is not None]  # fmt: skip
        made.properties[name] = (parts[0], parts[1] if len(parts) > 1 else None)
        functions += parts
    for definition in sorted(source.methods, key=lambda d: d.node.name):
        original = made.python.__dict__.get(definition.node.name)
        starts = definition.node.name == "__init__"
        self_value = UnderConstruction() if starts else None
        functions.append(add_method(made, definition, names, original, self_value))
    for function in sorted(functions, key=lambda f: f.name != "__init__"):
        function.ensure_defined()


def renamed(definition: Definition, name: str) -> Definition:
    """The same function under another name."""
    old = definition.node
    node = ast.FunctionDef(name, old.args, old.body, [], old.returns, old.type_comment)
    return Definition(ast.copy_location(node, old), definition.source)


# ---- objects


def converted(obj: Any) -> Any:
    """A Python object as an object of its class in programs: attributes are copied."""
    if isinstance(obj, ScriptObject):
        return obj
    from flambeau.jit.run.binding import converter

    made = RecursiveScriptClass(class_type_of(type(obj)))
    for name, attribute in made._type.attributes.items():
        made.__dict__[name] = converter(attribute.type)(getattr(obj, name))
    return made


class RecursiveScriptClass(ScriptObject):
    """An object of a compiled class, whose methods Python can call."""

    def __setattr__(self, name: str, value: Any) -> None:
        setter = self._type.properties.get(name, (None, None))[1]
        if setter is not None:
            setter(self, value)
        elif name in self._type.attributes:
            from flambeau.jit.run.binding import converter

            self.__dict__[name] = converter(self._type.attributes[name].type)(value)
        else:
            raise AttributeError(f"'{self._type.qualified_name}' has no attribute '{name}'")


MAGIC = (
    "iter len neg mul contains add sub pow truediv mod ne eq lt gt le ge and or xor getitem "
    "setitem call int float bool str enter exit"
).split()


def _magic(name: str) -> Any:
    def method(self: RecursiveScriptClass, *args: Any) -> Any:
        function = self._type.methods.get(name)
        if function is None:
            raise TypeError
        return function(self, *args)

    return method


for _name in MAGIC:
    setattr(RecursiveScriptClass, f"__{_name}__", _magic(f"__{_name}__"))
RecursiveScriptClass.__hash__ = object.__hash__  # type: ignore[method-assign, assignment]
RecursiveScriptClass.__repr__ = ScriptObject.__repr__  # type: ignore[method-assign]
