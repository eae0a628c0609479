"""What the names of a Python function mean to the program that is made of it."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Mapping
from typing import Any

from flambeau.jit.frontend.sugar import SugaredValue, sugar_of
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Graph
from flambeau.jit.ir.source import SourceRange
from flambeau.jit.modules.annotations import type_of_annotation

MISSING: Any = object()


class PythonScope:
    """Names that Python objects stand behind.

    scopes: where a name is looked for, in order. own: the class that is being declared, by its
        name, which its methods may use.
    """

    def __init__(self, *scopes: Mapping[str, Any], own: dict[str, T.Type] | None = None) -> None:
        self.scopes = scopes
        self.own = own or {}

    def find(self, name: str) -> Any:
        """The object that a name stands for; MISSING if there is none."""
        for scope in self.scopes:
            if name in scope:
                return scope[name]
        return getattr(builtins, name, MISSING)

    def value(self, name: str, graph: Graph, where: SourceRange) -> SugaredValue | None:
        """What a name means as a value."""
        own = self.own.get(name)
        if own is not None:
            from flambeau.jit.modules.handlers import class_sugar

            return class_sugar(own)
        found = self.find(name)
        return None if found is MISSING else sugar_of(found, where)

    def type(self, name: str, where: SourceRange) -> T.Type | None:
        """The type that a name, which may have dots, means."""
        if name in self.own:
            return self.own[name]
        first, *rest = name.split(".")
        found = self.find(first)
        for part in rest:
            found = getattr(found, part, MISSING)
        if found is MISSING:
            return None
        from flambeau.jit.modules.interfaces import interface_type

        declared = interface_type(found) if inspect.isclass(found) else None
        return declared or type_of_annotation(found, default=None)


def scope_of(function: Any, extra: Mapping[str, Any] | None = None) -> PythonScope:
    """The names that a Python function sees: what it closes over, its globals, the classes that
    its annotations name.
    """
    function = inspect.unwrap(getattr(function, "__func__", function))
    closed = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            closed[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return PythonScope(closed, function.__globals__, _captured(function), extra or {})


def _captured(function: Any) -> dict[str, Any]:
    """Classes in annotations, by their names: they may be local to where the function was made."""
    notes = getattr(function, "__annotations__", {}).values()
    return {note.__name__: note for note in notes if inspect.isclass(note)}


def scope_of_class(made: T.ClassType, scope: Mapping[str, Any]) -> PythonScope:
    """The names that the methods of a class see."""
    owner = made.python
    scopes: list[Mapping[str, Any]] = []
    for item in vars(owner).values():
        function = getattr(item, "fget", getattr(item, "__func__", item))
        if inspect.isfunction(function):
            scopes.extend(scope_of(function).scopes)
    return PythonScope(*scopes, scope, own={owner.__name__: made})


def scope_of_interface(made: T.InterfaceType, owner: type, scope: Mapping[str, Any]) -> PythonScope:
    """The names that the declarations of an interface see."""
    return PythonScope(scope, own={owner.__name__: made})
