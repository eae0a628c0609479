"""The methods and properties of a class, read from its source."""

from __future__ import annotations

import ast
import dataclasses
import textwrap
from dataclasses import dataclass, field
from typing import Any

from flambeau.jit import markers
from flambeau.jit.frontend.source import Definition, shift_columns, source_lines
from flambeau.jit.ir.source import Source


@dataclass
class ClassSource:
    """The functions of a class. properties: names, getters, and setters or None."""

    methods: list[Definition] = field(default_factory=list)
    properties: list[tuple[str, Definition, Definition | None]] = field(default_factory=list)


def class_source(owner: type) -> ClassSource:
    """Read the class. Static methods, and what is marked as unused or ignored, are left out.

    Raises:
        RuntimeError: its body has statements that are no functions.
    """
    lines, first, filename = source_lines(owner)
    text = "".join(lines)
    plain = textwrap.dedent(text)
    tree = ast.parse(plain)
    indent = len(text.split("\n", 1)[0]) - len(plain.split("\n", 1)[0])
    if indent:
        shift_columns(tree, indent)
    body = tree.body[0]
    if len(tree.body) != 1 or not isinstance(body, ast.ClassDef):
        raise RuntimeError("Expected a single top-level class")
    found = ClassSource()
    setters: dict[str, Definition] = {}
    for node in body.body:
        if isinstance(node, ast.FunctionDef):
            _add(owner, _definition(node, lines, filename, first), found, setters)
    found.properties = [(name, getter, setters.get(name)) for name, getter, _ in found.properties]
    if dataclasses.is_dataclass(owner):
        from flambeau.jit.modules.dataclass_source import add_dataclass_methods

        add_dataclass_methods(owner, found)
    return found


def _definition(node: ast.FunctionDef, lines: list[str], filename: str, first: int) -> Definition:
    """A method with a text of its own, so that errors show no other one."""
    start = min(node.lineno, *(mark.lineno for mark in node.decorator_list), node.lineno) - 1
    text = "".join(lines[start : node.end_lineno])
    ast.increment_lineno(node, -start)
    return Definition(node, Source(text, filename, first + start))


def _add(
    owner: Any, definition: Definition, found: ClassSource, setters: dict[str, Definition]
) -> None:
    name = definition.node.name
    marks = [_mark(mark) for mark in definition.node.decorator_list]
    if "staticmethod" in marks or "classmethod" in marks:
        return
    attribute = owner.__dict__.get(name)
    if "property" in marks:
        unused = getattr(owner, "__jit_unused_properties__", [])
        if name not in unused and not markers.should_drop(getattr(attribute, "fget", None)):
            found.properties.append((name, definition, None))
    elif "setter" in marks:
        setters[name] = definition
    elif not markers.is_ignored(attribute):
        found.methods.append(definition)


def _mark(node: ast.expr) -> str:
    """`property`, and `setter` of `@x.setter`."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def properties_of(owner: type, unused: Any = ()) -> list[tuple[str, Definition, Definition | None]]:
    """The properties of a module's class and its bases that programs may use."""
    from flambeau.jit.frontend.source import definition_of

    found = []
    for name in dir(owner):
        item = getattr(owner, name, None)
        if not isinstance(item, property) or name in unused or item.fget is None:
            continue
        if markers.should_drop(item.fget):
            continue
        setter = item.fset
        keeps = setter is not None and not markers.should_drop(setter)
        found.append((name, definition_of(item.fget), definition_of(setter) if keeps else None))
    return found
