"""Classes as archives hold them: modules, script classes, NamedTuples, interfaces, enumerations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import Function, FunctionSchema
from flambeau.jit.ir.values import type_of
from flambeau.jit.printing.code_text import CodeWriter
from flambeau.jit.printing.constants import constant_text
from flambeau.jit.printing.identifiers import is_identifier
from flambeau.jit.printing.literals import name_text


def write_class(writer: CodeWriter, type: T.Type) -> None:
    """Write the definition of a class, whatever its kind."""
    if isinstance(type, T.ClassType):
        _write_class(writer, type)
    elif isinstance(type, T.TupleType):
        _head(writer, type, "(NamedTuple)")
        for name, element in zip(type.fields, type.elements, strict=True):
            writer.line(f"  {name} : {element.annotation}")
    elif isinstance(type, T.InterfaceType):
        _head(writer, type, "(ModuleInterface)" if type.is_module else "(Interface)")
        for method in type.methods.values():
            _write_signature(writer, method)
    elif isinstance(type, T.EnumType):
        _head(writer, type, "(Enum)")
        for member in type.python:
            value = member.value
            shown = name_text(value) if isinstance(value, str) else str(value)
            writer.line(f"  {member.name} = {shown}")
    else:
        raise TypeError(f"{type} has no definition")


def _head(writer: CodeWriter, type: Any, base: str) -> None:
    writer.line(f"class {type.qualified_name.rpartition('.')[2]}{base}:")


def _write_class(writer: CodeWriter, type: T.ClassType) -> None:
    _head(writer, type, "(Module)" if type.is_module else "")
    writer.level += 1
    if type.is_module:
        _write_lists(writer, type)
    for index, (name, attribute) in enumerate(type.attributes.items()):
        writer.dependencies.add_type(attribute.type)
        annotation = attribute.type.annotation
        if is_identifier(name):
            writer.line(f"{name} : {annotation}")
            continue
        if index == 0:
            writer.line("__annotations__ = []")
        writer.line(f"__annotations__[{name_text(name)}] = {annotation}")
    for name, value in type.constants.items():
        _write_constant(writer, name, value)
    for method in type.methods.values():
        writer.function(method, typed_self=True)
    for hook in _once((*type.forward_hooks, *type.forward_pre_hooks)):
        writer.function(hook, typed_self=True)
    writer.level -= 1


def _write_lists(writer: CodeWriter, type: T.ClassType) -> None:
    for title, kind in (("__parameters__", "parameter"), ("__buffers__", "buffer")):
        _write_names(writer, title, [a.name for a in type.attributes.values() if a.kind == kind])
    if type.forward_pre_hooks:
        _write_names(writer, "__forward_pre_hooks__", [h.name for h in type.forward_pre_hooks])
    if type.forward_hooks:
        _write_names(writer, "__forward_hooks__", [h.name for h in type.forward_hooks])


def _write_names(writer: CodeWriter, title: str, names: Iterable[str]) -> None:
    listed = "".join(f"{name_text(name)}, " for name in names)
    writer.line(f"{title} = [{listed}]")


def _write_constant(writer: CodeWriter, name: str, value: Any) -> None:
    type = type_of(value)
    text = constant_text(value, type, writer.constants)
    writer.line(f"{name} : Final[{type.annotation}] = {text}")


def _write_signature(writer: CodeWriter, method: Any) -> None:
    schema: FunctionSchema = getattr(method, "schema", method)
    parameters = ["self"]
    for parameter in schema.arguments[1:]:
        writer.dependencies.add_type(parameter.type)
        parameters.append(f"{parameter.name}: {parameter.type.annotation}")
    result = schema.returns[0].type
    writer.dependencies.add_type(result)
    writer.line(f"  def {schema.name}({', '.join(parameters)}) -> {result.annotation}:")
    writer.line("    pass")


def _once(functions: Iterable[Function]) -> list[Function]:
    return list({function.name: function for function in functions}.values())
