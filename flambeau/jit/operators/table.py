"""The table of operators: the schemas that rows imply, and those of `schemas.txt`.

    aten::Bool.Tensor(Tensor a) -> bool
    aten::neg; .out
    aten::neg.int(int a) -> int
    aten::arccos(Tensor self) -> Tensor; .out
    aten::arccos_
    -aten::lobpcg

An operator stands in the file where its overloads are others than those that its rows imply
(`implied.py`), or in another order, which is PyTorch's: the first that fits is taken. What a row
implies, and what follows from another overload (`derived.py`), is only named there, behind the one
before it. A `-` says that there is no operator of a row's name.
`conformance/jit/write_schemas.py` writes it.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from flambeau._core import dtype as dt
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import REQUIRED, FunctionSchema, Parameter
from flambeau.jit.ir.values import dtype_number
from flambeau.jit.operators import derived, implied

FILE = Path(__file__).with_name("schemas.txt")

NAMED_TYPES = {
    **T.SIMPLE,
    "SymInt": T.INT, "SymFloat": T.FLOAT, "SymBool": T.BOOL, "ScalarType": T.INT,
    "Layout": T.INT, "MemoryFormat": T.INT, "None": T.NONE, "number": T.NUMBER,
    "AnyClassType": T.ANY_CLASS, "AnyListType": T.ANY_LIST, "AnyTupleType": T.ANY_TUPLE,
}  # fmt: skip
"""Types without parts, as schemas spell them. Enumerations are ints in programs."""
DEFAULTS: dict[str, Any] = {"None": None, "True": True, "False": False}


@cache
def _lines() -> dict[str, list[str]]:
    """The lines of the file, by the operators' names; none of what is no operator."""
    found: dict[str, list[str]] = {}
    for line in FILE.read_text("utf-8").splitlines():
        if line.startswith("-"):
            found[line[1:]] = []
        else:
            found.setdefault(OPERATOR.match(line)[0], []).append(line)  # type: ignore[index]
    return found


def overloads(name: str) -> tuple[FunctionSchema, ...]:
    """The schemas of `aten::add` in PyTorch's order; none if there is no such operator."""
    return _standing(name) or tuple(DEFINED.get(name, ()))


@cache
def _standing(name: str) -> tuple[FunctionSchema, ...]:
    return tuple(schema(text) for text in texts(name))


def texts(name: str) -> list[str]:
    """The same as text, without those of programs."""
    lines = _lines().get(name)
    if lines is None:
        return list(implied.schemas(name).values())
    found: list[str] = []
    for item in (item for line in lines for item in line.split("; ")):
        head = f"{name}{item}" if item.startswith(".") else item
        found.append(item if "(" in item else _by_head(name, head, found))
    return found


def _by_head(name: str, head: str, before: list[str]) -> str:
    """The schema that stands in the file by its full name alone."""
    known = implied.schemas(name)
    if head in known:
        return known[head]
    plain = texts(name[:-1]) if name.endswith("_") else []
    made = derived.named(head, plain, before)
    if made is None:
        raise LookupError(f"{FILE.name}: nothing says what {head} is")
    return made


def names() -> tuple[str, ...]:
    """The names of all operators."""
    of_rows = (name for name in implied.names() if name not in _lines())
    of_file = (name for name, lines in _lines().items() if lines)
    return tuple(dict.fromkeys((*of_file, *of_rows, *DEFINED)))


DEFINED: dict[str, list[FunctionSchema]] = {}
"""Operators that a program has defined, by name: see `flambeau.library`."""


def define(made: FunctionSchema) -> None:
    """Make an operator of a program known."""
    DEFINED.setdefault(made.name, []).append(made)


def undefine(made: FunctionSchema) -> None:
    """Forget an operator of a program."""
    others = [schema for schema in DEFINED.get(made.name, ()) if schema.overload != made.overload]
    if others:
        DEFINED[made.name] = others
    else:
        DEFINED.pop(made.name, None)


def overload(name: str, overload_name: str = "") -> FunctionSchema | None:
    """The schema of one overload, if there is one of that name."""
    for found in overloads(name):
        if found.overload == overload_name:
            return found
    return None


@cache
def schema(text: str) -> FunctionSchema:
    """Parse a schema; ValueError where it is malformed."""
    made = _Reader(text).schema()
    SPELLED[made.full_name] = text
    return made


SPELLED: dict[str, str] = {}
"""How operators' schemas are written in the file, by full name."""

OPERATOR = re.compile(r"[\w:]+")
WORD = re.compile(r"[A-Za-z_][\w.:]*")
NUMBER = re.compile(r"-?(?:inf|nan|\d+(?:\.\d*)?(?:e[+-]?\d+)?)")
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'')
HEAD = re.compile(r"(\w+(?:::\w+)*)(?:\.(\w+))?\(")
ALIAS = re.compile(r"\(([^()]*)\)")
LIST = re.compile(r"\[(\d*)\]")


class _Reader:
    """Reads one schema from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, wanted: str) -> ValueError:
        return ValueError(f"malformed schema, {wanted} expected at {self.at}: {self.text}")

    def skip(self, token: str) -> bool:
        """Step over a token, if it comes next; blanks before it go, too."""
        position = self.at
        while self.text.startswith(" ", position):
            position += 1
        if not self.text.startswith(token, position):
            return False
        self.at = position + len(token)
        return True

    def expect(self, token: str) -> None:
        if not self.skip(token):
            raise self.fail(repr(token))

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Step over what a pattern matches, blanks before it included."""
        self.skip("")
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def schema(self) -> FunctionSchema:
        head = self.match(HEAD)
        if head is None:
            raise self.fail("a name")
        arguments, vararg = self.arguments()
        self.expect("->")
        returns, varret = self.returns()
        self.skip("")
        if self.at != len(self.text):
            raise self.fail("the end")
        name, overload_name = head.groups()
        return FunctionSchema(name, overload_name or "", arguments, returns, vararg, varret)

    def arguments(self) -> tuple[tuple[Parameter, ...], bool]:
        found: list[Parameter] = []
        keyword_only = vararg = False
        while not self.skip(")"):
            if self.skip("..."):
                vararg = True
            elif self.skip("*"):
                keyword_only = True
            else:
                found.append(self.argument(keyword_only))
            self.skip(",")
        return tuple(found), vararg

    def argument(self, keyword_only: bool = False) -> Parameter:
        type, length, alias = self.type()
        word = self.match(WORD)
        default = self.default(type, length) if self.skip("=") else REQUIRED
        return Parameter(word[0] if word else "", type, default, keyword_only, length, alias)

    def returns(self) -> tuple[tuple[Parameter, ...], bool]:
        if self.skip("..."):
            return (), True
        if not self.skip("("):
            return (self.argument(),), False
        found: list[Parameter] = []
        while not self.skip(")"):
            found.append(self.argument())
            self.skip(",")
        return tuple(found), False

    def type(self) -> tuple[T.Type, int | None, str]:
        """A type, the length of the list if one is given, and the alias mark."""
        type = self.plain_type()
        length: int | None = None
        alias = ""
        while self.at < len(self.text):
            if self.text[self.at] == "(":
                mark = self.match(ALIAS)
                alias = mark[1] if mark else ""
            elif self.text[self.at] == "[":
                brackets = self.match(LIST)
                assert brackets is not None
                type, length = T.ListType(type), int(brackets[1]) if brackets[1] else None
            elif self.text[self.at] == "?":
                self.at += 1
                type = T.optional(type)
            else:
                break
        return type, length, alias

    def plain_type(self) -> T.Type:
        if self.skip("("):
            return T.TupleType(self.inner_types())
        word = self.match(WORD)
        if word is None:
            raise self.fail("a type")
        name = word[0]
        if name == "Dict":
            self.expect("(")
            return T.DictType(*self.inner_types())
        if name == "Future":
            self.expect("(")
            return T.FutureType(*self.inner_types())
        if name in NAMED_TYPES:
            return NAMED_TYPES[name]
        if name[0] == "t":
            return T.VariableType(name)
        raise self.fail("a type")

    def inner_types(self) -> tuple[T.Type, ...]:
        """Types up to the closing bracket; the opening one has been read."""
        found: list[T.Type] = []
        while not self.skip(")"):
            found.append(self.type()[0])
            self.skip(",")
        return tuple(found)

    def default(self, type: T.Type, length: int | None) -> Any:
        value = self.constant()
        wanted = type.inner if isinstance(type, T.OptionalType) else type
        if isinstance(value, (int, float)) and isinstance(wanted, T.ListType):
            return (value,) * (length or 1)
        if wanted == T.FLOAT and isinstance(value, int):
            return float(value)
        return value

    def constant(self) -> Any:
        if self.skip("["):
            found = []
            while not self.skip("]"):
                found.append(self.constant())
                self.skip(",")
            return tuple(found)
        text = self.match(TEXT)
        if text is not None:
            plain = text[1] if text[1] is not None else text[2]
            return plain.encode().decode("unicode_escape")
        number = self.match(NUMBER)
        if number is not None:
            return int(number[0]) if number[0].lstrip("-").isdigit() else float(number[0])
        word = self.match(WORD)
        if word is not None and word[0] in dt.BY_NAME:
            return dtype_number(dt.BY_NAME[word[0]])
        if word is None or word[0] not in DEFAULTS:
            raise self.fail("a constant")
        return DEFAULTS[word[0]]
