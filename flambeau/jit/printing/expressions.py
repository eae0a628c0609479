"""Nodes as expressions: `torch.add(x, 1)`, `(l).forward(x, )`, `unchecked_cast(Tensor, y)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import REQUIRED, FunctionSchema
from flambeau.jit.ir.graph import Node, Value
from flambeau.jit.printing.constants import ConstantTable, constant_text
from flambeau.jit.printing.identifiers import is_identifier
from flambeau.jit.printing.literals import string_text

RENAMED = {"aten::backward": "torch.autograd.backward", "aten::grad": "torch.autograd.grad"}
UNTOLD = (T.OptionalType, T.UnionType, T.InterfaceType)
Uses = Callable[[Value], str]


def expression(node: Node, use: Uses, table: ConstantTable) -> str:
    """What a node computes, as code. `use`: how its inputs are written."""
    if node.kind == "prim::Constant":
        return _constant(node, table)
    write = WRITERS.get(node.kind)
    return write(node, use) if write is not None else _operator(node, use)


def operator_name(kind: str) -> str:
    """`torch.add`, `ops.prim.NumToTensor`."""
    if kind in RENAMED:
        return RENAMED[kind]
    namespace, _, name = kind.partition("::")
    return f"torch.{name}" if namespace == "aten" else f"ops.{namespace}.{name}"


def joined(values: Sequence[Value], use: Uses) -> str:
    """The values, with commas between them."""
    return ", ".join(map(use, values))


def _constant(node: Node, table: ConstantTable) -> str:
    type = node.output.type
    if isinstance(type, T.FunctionType):
        return type.function.qualified_name
    return constant_text(node.attributes.get("value"), type, table)


# ---- operators


def _operator(node: Node, use: Uses) -> str:
    """A call; arguments that have their default's value are left out from the end."""
    schema = node.schema
    if schema is None:
        return f"{operator_name(node.kind)}({joined(node.inputs, use)})"
    needed, outs = needed_arguments(schema, node.inputs)
    written = []
    for index, value in enumerate(node.inputs[:needed]):
        keyword = ""
        if index < len(schema.arguments) and schema.arguments[index].keyword_only:
            keyword = f"{schema.arguments[index].name}="
        written.append(keyword + use(value))
    first = len(schema.arguments) - outs
    for parameter, value in zip(schema.arguments[first:], node.inputs[first:], strict=False):
        written.append(f"{parameter.name}={use(value)}")
    return f"{operator_name(node.kind)}({', '.join(written)})"


def needed_arguments(schema: FunctionSchema, inputs: Sequence[Value]) -> tuple[int, int]:
    """How many inputs from the first on have to be written, and how many at the end are the
    tensors that results are written to (`out=`).
    """
    outs = 0
    for parameter in reversed(schema.arguments):
        if not (parameter.keyword_only and parameter.written):
            break
        outs += 1
    if len(inputs) > len(schema.arguments):
        return len(inputs), outs
    needed = len(schema.arguments) - outs
    while needed > 0 and _is_default(schema.arguments[needed - 1].default, inputs[needed - 1]):
        needed -= 1
    return needed, outs


def _is_default(default: Any, value: Value) -> bool:
    if default is REQUIRED or not value.is_constant:
        return False
    given = value.constant
    if isinstance(default, tuple) and isinstance(given, list):
        given = tuple(given)
    if given is None or default is None:
        return given is default
    return type(given) is type(default) and given == default


# ---- what has a form of its own


def _called(name: str) -> Callable[[Node, Uses], str]:
    return lambda node, use: f"{name}({joined(node.inputs, use)})"


def _annotate(node: Node, use: Uses) -> str:
    return f"annotate({node.output.type.annotation}, {use(node.inputs[0])})"


def _cast(node: Node, use: Uses) -> str:
    return f"unchecked_cast({node.output.type.annotation}, {use(node.inputs[0])})"


def _item(node: Node, use: Uses) -> str:
    owner = use(node.inputs[0])
    owner = owner if owner.isidentifier() else f"({owner})"
    return f"{owner}[{use(node.inputs[1])}]"


def _tuple(node: Node, use: Uses) -> str:
    type = node.output.type
    name = type.annotation if isinstance(type, T.TupleType) and type.qualified_name else ""
    return f"{name}({joined(node.inputs, use)}{',' if len(node.inputs) == 1 else ''})"


def _tuple_index(node: Node, use: Uses) -> str:
    return f"({use(node.inputs[0])})[{use(node.inputs[1])}]"


def _tuple_slice(node: Node, use: Uses) -> str:
    begin, end = node.attributes["beg"], node.attributes["end"]
    return f"({use(node.inputs[0])})[{begin}:{end}]"


def _list(node: Node, use: Uses) -> str:
    text = f"[{joined(node.inputs, use)}]"
    return text if _tell(node.inputs, node.output.type) else _typed(node, text)


def _dictionary(node: Node, use: Uses) -> str:
    keys, values = node.inputs[::2], node.inputs[1::2]
    pairs = [f"{use(k)}: {use(v)}" for k, v in zip(keys, values, strict=True)]
    text = f"{{{', '.join(pairs)}}}"
    return text if _tell(values, node.output.type) else _typed(node, text)


def _tell(values: Sequence[Value], type: T.Type) -> bool:
    """Whether the elements tell the type of a list or dictionary; torch writes it down where they
    may be None or of several types.
    """
    element = type.parts[-1]
    if not values or isinstance(element, UNTOLD) or element == T.ANY:
        return False
    found = values[0].type
    for value in values[1:]:
        found = T.common(found, value.type)
    return found == element


def _typed(node: Node, text: str) -> str:
    return f"annotate({node.output.type.annotation}, {text})"


def _object(node: Node, use: Uses) -> str:
    name = node.output.type.annotation
    return f"{name}.__new__({name})"


def _attribute(node: Node, use: Uses) -> str:
    name = node.attributes["name"]
    if is_identifier(name):
        return f"{use(node.inputs[0])}.{name}"
    return f"getattr({use(node.inputs[0])}, {string_text(name)})"


def _function(node: Node, use: Uses) -> str:
    return f"{use(node.inputs[0])}({_each(node.inputs[1:], use)})"


def _method(node: Node, use: Uses) -> str:
    arguments = _each(node.inputs[1:], use)
    return f"({use(node.inputs[0])}).{node.attributes['name']}({arguments})"


def _each(values: Sequence[Value], use: Uses) -> str:
    return "".join(f"{use(value)}, " for value in values)


def _unwrap(node: Node, use: Uses) -> str:
    (value,) = node.inputs
    written = use(value)
    if value.type == T.NONE or (value.is_constant and value.constant is None):
        written = f"annotate({T.optional(node.output.type).annotation}, {written})"
    return f"{operator_name(node.kind)}({written})"


def _isinstance(node: Node, use: Uses) -> str:
    types = [type.annotation for type in node.attributes["types"]]
    shown = types[0] if len(types) == 1 else f"({', '.join(types)})"
    return f"isinstance({use(node.inputs[0])}, {shown})"


def _tolist(node: Node, use: Uses) -> str:
    return f"annotate({node.output.type.annotation}, {use(node.inputs[0])}.tolist())"


def _uninitialized(node: Node, use: Uses) -> str:
    return f"uninitialized({node.output.type.annotation})"


def _enum_part(name: str) -> Callable[[Node, Uses], str]:
    return lambda node, use: f"({use(node.inputs[0])}).{name}"


def _python(node: Node, use: Uses) -> str:
    return f"^{node.attributes.get('name', '')}()({joined(node.inputs, use)})"


WRITERS: dict[str, Callable[[Node, Uses], str]] = {
    "aten::ScalarImplicit": _annotate, "aten::FloatImplicit": _annotate,
    "aten::IntImplicit": _annotate, "aten::ComplexImplicit": _annotate,
    "aten::Int": _called("int"), "aten::Float": _called("float"), "aten::Bool": _called("bool"),
    "aten::str": _called("str"), "aten::sorted": _called("sorted"), "prim::Print": _called("print"),
    "aten::__getitem__": _item, "aten::_unwrap_optional": _unwrap,
    "prim::TupleConstruct": _tuple, "prim::TupleIndex": _tuple_index,
    "prim::TupleSlice": _tuple_slice, "prim::ListConstruct": _list,
    "prim::DictConstruct": _dictionary, "prim::CreateObject": _object,
    "prim::GetAttr": _attribute, "prim::CallFunction": _function, "prim::CallMethod": _method,
    "prim::unchecked_unwrap_optional": _cast, "prim::unchecked_cast": _cast,
    "prim::isinstance": _isinstance, "prim::tolist": _tolist,
    "prim::Uninitialized": _uninitialized, "prim::EnumValue": _enum_part("value"),
    "prim::EnumName": _enum_part("name"), "prim::PythonOp": _python,
}  # fmt: skip
