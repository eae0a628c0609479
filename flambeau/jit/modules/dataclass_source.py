"""The methods that `@dataclass` makes, as source."""

from __future__ import annotations

import ast
import dataclasses
import types
import typing
from typing import Any

from flambeau.jit.frontend.source import Definition
from flambeau.jit.ir.source import Source
from flambeau.jit.modules.class_source import ClassSource

FILENAME = "__torch_jit_dataclass__"
ORDER = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


def add_dataclass_methods(owner: Any, found: ClassSource) -> None:
    """Add `__init__`, `__eq__`, `__repr__` and comparisons where the class does not define them."""
    given = {definition.node.name for definition in found.methods}
    settings = owner.__dataclass_params__
    texts = []
    if settings.init and "__init__" not in given:
        texts.append(_init(owner))
    if settings.eq and "__eq__" not in given:
        texts.append(_compare(owner, "__eq__"))
    if settings.order:
        texts += [_order(owner, name, symbol) for name, symbol in ORDER.items()]
    for text in texts:
        source = Source(text, f"{FILENAME}_{owner.__name__}")
        node = ast.parse(text).body[0]
        assert isinstance(node, ast.FunctionDef)
        found.methods.append(Definition(node, source))


def _init(owner: Any) -> str:
    """Parameters for the fields, assignments, and the call of `__post_init__`.

    Raises:
        NotImplementedError: a field has a default factory.
    """
    parameters, lines = [], []
    for field in dataclasses.fields(owner):
        if field.default_factory is not dataclasses.MISSING:
            raise NotImplementedError("Default factory initializers are not supported")
        default = "" if field.default is dataclasses.MISSING else f" = {field.default!r}"
        if field.init:
            parameters.append(f"{field.name}: {_spelled(field.type)}{default}")
            lines.append(f"    self.{field.name} = {field.name}")
    if hasattr(owner, "__post_init__"):
        lines.append("    self.__post_init__()")
    body = "\n".join(lines) or "    pass"
    return f"def __init__(self, {', '.join(parameters)}) -> None:\n{body}\n"


def _compared(owner: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(owner) if field.compare]


def _compare(owner: Any, name: str) -> str:
    """Fields are compared one after another, up to the first that differs."""
    notes = {field.name: _spelled(field.type) for field in dataclasses.fields(owner)}
    lines = [f"def {name}(self, other: {owner.__name__}) -> bool:"]
    for place, field in enumerate(_compared(owner)):
        optional = notes[field].startswith("Optional[") or "None" in notes[field]
        test = OPTIONAL_TEST if optional else PLAIN_TEST
        lines.append(test.format(field=field, a=f"a{place}", b=f"b{place}"))
    return "\n".join([*lines, "    return True"]) + "\n"


PLAIN_TEST = """\
    if self.{field} == other.{field}:
        pass
    else:
        return False"""
OPTIONAL_TEST = """\
    {a} = self.{field}
    {b} = other.{field}
    if {a} is None:
        if {b} is not None:
            return False
    elif {b} is None:
        return False
    elif {a} == {b}:
        pass
    else:
        return False"""


def _order(owner: Any, name: str, symbol: str) -> str:
    """Fields are compared one after another: the first that differs decides."""
    lines = [f"def {name}(self, other: {owner.__name__}) -> bool:"]
    for field in _compared(owner):
        lines.append(f"    if self.{field} != other.{field}:")
        lines.append(f"        return self.{field} {symbol[0]} other.{field}")
    lines.append(f"    return {len(symbol) == 2}")
    return "\n".join(lines) + "\n"


def _spelled(note: Any) -> str:
    """An annotation as source."""
    if isinstance(note, str):
        return note
    parts = typing.get_args(note)
    if note is type(None) or note is None:
        return "None"
    if not parts:
        return note.__name__ if isinstance(note, type) else str(note).replace("typing.", "")
    spelled = [_spelled(part) for part in parts]
    origin = typing.get_origin(note)
    if origin in (typing.Union, types.UnionType):
        return f"Union[{', '.join(spelled)}]" if len(spelled) > 2 else _optional(spelled)
    return f"{origin.__name__.capitalize()}[{', '.join(spelled)}]"


def _optional(spelled: list[str]) -> str:
    if "None" not in spelled:
        return f"Union[{', '.join(spelled)}]"
    (inner,) = [part for part in spelled if part != "None"]
    return f"Optional[{inner}]"
