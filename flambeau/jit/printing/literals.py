"""Constants as text, as torch writes them in graphs and in code."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

ESCAPES = {
    "\\": "\\\\", "'": "\\'", '"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f",
    "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
}  # fmt: skip


def float_text(number: float) -> str:
    """`3.` for whole numbers below 1e10, else 17 significant digits: `1.0000000000000001e-05`."""
    if math.isfinite(number) and abs(number) < 1e10 and number == int(number):
        sign = "-" if math.copysign(1.0, number) < 0 else ""
        return f"{sign}{abs(int(number))}."
    return f"{number:.17g}"


def complex_text(number: complex) -> str:
    """`3.+4.j`."""
    imaginary = float_text(number.imag)
    sign = "" if imaginary.startswith("-") else "+"
    return f"{float_text(number.real)}{sign}{imaginary}j"


def string_text(text: str) -> str:
    """In double quotes, with C's escapes; bytes beyond printable ASCII as three octal digits."""
    return f'"{"".join(map(_escaped, text))}"'


def name_text(name: str) -> str:
    """The same for a name in a declaration, where what is beyond ASCII stands as it is."""
    shown = (_escaped(character) if character.isascii() else character for character in name)
    return f'"{"".join(shown)}"'


def _escaped(character: str) -> str:
    if character in ESCAPES:
        return ESCAPES[character]
    if " " <= character <= "~":
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode())


def attribute_text(value: Any, type: Any = None) -> str:
    """An attribute of a node, as `print(graph)` shows it; `type`: that of the node's result."""
    from flambeau._tensor.tensor import Tensor
    from flambeau.jit.printing.small_tensors import tensor_text

    if value is None:
        return "None"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, complex):
        return complex_text(value)
    if isinstance(value, str):
        return string_text(value)
    if isinstance(value, Tensor):
        return tensor_text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(attribute_text, value))}]"
    if isinstance(value, (tuple, dict)) and type is not None:
        return _as_code(value, type)
    return _named_text(value, type)


def _as_code(value: Any, type: Any) -> str:
    from flambeau.jit.printing.constants import ConstantTable, constant_text

    return constant_text(value, type, ConstantTable())


def _named_text(value: Any, type: Any) -> str:
    from flambeau._core.device import device
    from flambeau.jit.ir.types import EnumType, Type
    from flambeau.jit.printing.graph_text import type_text

    if isinstance(value, device):
        return string_text(str(value))
    if isinstance(value, Type):
        return type_text(value)
    if isinstance(value, Enum) and isinstance(type, EnumType):
        return f"{type.qualified_name}.{value.name}"
    return str(value)
