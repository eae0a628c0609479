"""Constants as code: `[1, 2]`, `torch.device("cpu")`, `CONSTANTS.c0`."""

from __future__ import annotations

from enum import Enum
from typing import Any

from flambeau._core.device import device
from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir import types as T
from flambeau.jit.printing.literals import complex_text, float_text, string_text


class ConstantTable:
    """What code cannot write: tensors, texts beyond ASCII, objects. An archive has one table."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def name(self, value: Any) -> str:
        """`CONSTANTS.c0`; equal tensors are stored once."""
        for index, known in enumerate(self.values):
            if value is known or (isinstance(value, Tensor) and _same_tensor(value, known)):
                return f"CONSTANTS.c{index}"
        self.values.append(value)
        return f"CONSTANTS.c{len(self.values) - 1}"


def _same_tensor(one: Any, other: Any) -> bool:
    if not isinstance(other, Tensor) or one.dtype != other.dtype or one.device != other.device:
        return False
    if one.layout != other.layout or one.shape != other.shape:
        return False
    return bool(one.equal(other))


def is_inferable(type: T.Type) -> bool:
    """Whether the type of a list's elements can be told from any element."""
    if isinstance(type, (T.OptionalType, T.UnionType, T.InterfaceType)) or type == T.ANY:
        return False
    return all(map(is_inferable, type.parts)) if isinstance(type, T.TupleType) else True


def constant_text(value: Any, type: T.Type, table: ConstantTable) -> str:
    """A constant of a type as code."""
    if value is None:
        return "None"
    if isinstance(type, (T.OptionalType, T.UnionType)) or type in (T.ANY, T.NUMBER):
        type = _actual(value, type)
    simple = _simple_text(value, type)
    if simple is not None:
        return simple
    if isinstance(type, T.ListType):
        inside = [constant_text(v, type.element, table) for v in value]
        return annotated(f"[{', '.join(inside)}]", type, bool(value))
    if isinstance(type, T.TupleType):
        return _tuple_text(value, type, table)
    if isinstance(type, T.DictType):
        pairs = [f"{constant_text(k, type.key, table)}: {constant_text(v, type.value, table)}"
                 for k, v in value.items()]  # fmt: skip
        return annotated(f"{{{', '.join(pairs)}}}", type, bool(value))
    return table.name(value)


def annotated(text: str, type: T.Type, has_elements: bool) -> str:
    """A list or dictionary, with its type where its elements do not tell it."""
    if has_elements and all(map(is_inferable, type.parts)):
        return text
    return f"annotate({type.annotation}, {text})"


def _actual(value: Any, type: T.Type) -> T.Type:
    from flambeau.jit.ir.values import type_of

    for one in T.alternatives(type):
        if one.parts and isinstance(value, (list, dict, tuple)):
            return one
    return T.ANY if isinstance(value, (Tensor, Enum)) else type_of(value)


def _simple_text(value: Any, type: T.Type) -> str | None:
    if isinstance(value, bool):
        return str(value) if type != T.INT else str(int(value))
    if isinstance(value, str):
        return string_text(value) if value.isascii() else None
    if isinstance(value, Enum) and isinstance(type, T.EnumType):
        return f"{type.qualified_name}.{value.name}"
    if isinstance(value, device):
        return f"torch.device({string_text(str(value))})"
    if isinstance(value, complex):
        return complex_text(value)
    if isinstance(value, float) or (isinstance(value, int) and type == T.FLOAT):
        return float_text(float(value))
    return str(value) if isinstance(value, int) else None


def _tuple_text(value: Any, type: T.TupleType, table: ConstantTable) -> str:
    pairs = zip(value, type.elements, strict=True)
    inside = ", ".join(constant_text(v, t, table) for v, t in pairs)
    name = type.annotation if type.qualified_name else ""
    return f"{name}({inside}{',' if len(value) == 1 else ''})"
