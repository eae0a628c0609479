"""Operator schemas in ATen's notation: `sum.dim_IntList(Tensor self, int[1]? dim) -> Tensor`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

REQUIRED: Any = object()
# Functions of `torch` read a default of `Mean` as 0, no reduction. Scripts have other schemas.
_CONSTANTS = {"None": None, "True": True, "False": False, "Mean": 0, "long": "long"}


@dataclass(frozen=True, slots=True)
class Argument:
    """One parameter: `int[2] stride=1` has type "int", is a list of 2, and defaults to 1."""

    name: str
    type: str
    optional: bool
    is_list: bool
    length: int | None
    default: Any
    keyword_only: bool
    written: bool  # the alias mark (a!): the operator writes to it
    gaps: bool = False  # Tensor?[]: elements of the list may be None

    @property
    def is_tensor(self) -> bool:
        """A Tensor, Tensor? or list of tensors."""
        return self.type == "Tensor"


@dataclass(frozen=True, slots=True)
class Schema:
    """A parsed schema."""

    text: str
    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[str, ...]  # names of results; "" where unnamed
    return_types: tuple[str, ...]

    @property
    def full_name(self) -> str:
        """`sum.dim_IntList`."""
        return f"{self.name}.{self.overload}" if self.overload else self.name

    def argument(self, name: str) -> Argument:
        """The argument of a name; KeyError if there is none."""
        for argument in self.arguments:
            if argument.name == name:
                return argument
        raise KeyError(name)


_HEAD = re.compile(r"(\w+)(?:\.(\w+))?\((.*)\) -> (.*)", re.DOTALL)
_ARGUMENT = re.compile(
    r"(?P<type>\w+)(?P<inner>\?)?(?:\((?P<alias>[a-z*]?!?[^)]*)\))?(?P<list>\[(?P<length>\d*)\])?"
    r"(?P<optional>\?)?\s+(?P<name>\w+)(?:\s*=\s*(?P<default>.+))?"
)


@cache
def parse(text: str) -> Schema:
    """Parse a schema; ValueError where it is malformed."""
    match = _HEAD.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"malformed schema: {text}")
    name, overload, arguments, returns = match.groups()
    parsed = []
    keyword_only = False
    for part in _split(arguments):
        if part == "*":
            keyword_only = True
            continue
        parsed.append(_parse_argument(part, keyword_only))
    names, types = _parse_returns(returns)
    return Schema(text, name, overload or "", tuple(parsed), names, types)


def _split(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _parse_argument(text: str, keyword_only: bool) -> Argument:
    match = _ARGUMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"malformed argument in schema: {text}")
    is_list = match["list"] is not None
    return Argument(
        name=match["name"],
        type=match["type"],
        optional=bool(match["optional"] or (match["inner"] and not is_list)),
        is_list=is_list,
        length=int(match["length"]) if match["length"] else None,
        default=REQUIRED if match["default"] is None else _parse_default(match["default"]),
        keyword_only=keyword_only,
        written="!" in (match["alias"] or ""),
        gaps=is_list and match["inner"] is not None,
    )


def _parse_default(text: str) -> Any:
    text = text.strip()
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text.startswith("["):
        return tuple(_parse_default(item) for item in _split(text[1:-1]))
    if text[0] in "'\"":
        return text[1:-1]
    try:
        return int(text)
    except ValueError:
        return float(text)


def _parse_returns(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    text = text.strip()
    parts = _split(text[1:-1]) if text.startswith("(") else [text]
    names, types = [], []
    for part in parts:
        kind, _, name = part.partition(" ")
        names.append(name)
        types.append(kind)
    return tuple(names), tuple(types)


# ---- from signatures

ANNOTATIONS = {"Any": "Tensor", "Tensor": "Tensor", "dt.dtype": "ScalarType",
               **{name: name for name in ("bool", "float", "int", "str")}}  # fmt: skip
"""What annotations of programs stand for."""


def schema_of(function: Any, name: str) -> str:
    """The schema that the signature of a function states, which gives one tensor; KeyError for
    annotations that no schema has."""
    code = function.__code__
    count = code.co_argcount
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    by_position = function.__defaults__ or ()
    known = dict(zip(names[count - len(by_position) : count], by_position, strict=True))
    known.update(function.__kwdefaults__ or {})
    parts = [_stated(each, function.__annotations__[each], known) for each in names]
    if code.co_kwonlyargcount:
        parts.insert(count, "*")
    return f"{name}({', '.join(parts)}) -> Tensor"


def _stated(name: str, annotation: str, known: dict[str, Any]) -> str:
    """One parameter with its default; a tensor that is None by default may be None."""
    alone = annotation.removesuffix(" | None")
    may_be_none = alone != annotation or (alone == "Any" and name in known and known[name] is None)
    default = f"={known[name]!r}" if name in known else ""
    return f"{ANNOTATIONS[alone]}{'?' if may_be_none else ''} {name}{default}"
