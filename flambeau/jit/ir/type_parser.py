"""Reads types as graphs print them: `Tensor[]`, `Dict(str, int)?`, `(int, float)`."""

from __future__ import annotations

import re

from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import CompilationUnit


class TypeReader:
    """Reads a text from `self.at` on.

    types: classes and the like by qualified name; those that are missing are made.
    """

    def __init__(self, text: str, types: dict[str, T.Type], unit: CompilationUnit) -> None:
        self.text = text
        self.at = 0
        self.types = types
        self.unit = unit

    # ---- characters

    def space(self) -> None:
        """Go on to what is not white."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def match(self, pattern: str) -> re.Match[str] | None:
        """What stands here, if it is of a pattern; it is read."""
        found = re.compile(pattern).match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def takes(self, piece: str, before: str = "") -> bool:
        """Read a piece, behind white space, if it stands here, before a pattern."""
        found = self.match(rf"\s*{re.escape(piece)}{f'(?={before})' if before else ''}")
        return found is not None

    def expect(self, piece: str) -> None:
        """Read a piece that has to stand here."""
        if not self.takes(piece):
            raise self.error(f"'{piece}'")

    def must(self, pattern: str) -> str:
        """Read what has to be of a pattern."""
        self.space()
        found = self.match(pattern)
        if found is None:
            raise self.error(pattern)
        return found.group()

    def error(self, wanted: str) -> ValueError:
        """What is wrong here."""
        line = self.text.count("\n", 0, self.at) + 1
        here = self.text[self.at : self.at + 40].partition("\n")[0]
        return ValueError(f"line {line}: expected {wanted}, found '{here}'")

    # ---- types

    def type(self) -> T.Type:
        """A type, with `[]` and `?` behind it."""
        found = self.simple_type()
        while True:
            if self.match(r"\[\]"):
                found = T.ListType(found)
            elif self.match(r"\?"):
                found = T.optional(found)
            else:
                return found

    def simple_type(self) -> T.Type:
        """A type without suffix."""
        if self.takes("("):
            return T.TupleType(tuple(self.types_until(")")))
        name = self.must(r"[\w.]+")
        if name in ("Dict", "Union", "Future", "Tuple", "Optional", "List"):
            return self.made_of(name)
        if name == "NamedTuple":
            return self.named_tuple()
        if name == "Enum":
            self.expect("<")
            name = self.must(r"[\w.]+")
            self.expect(">")
            return self.types.setdefault(name, T.EnumType(name, T.INT, None))
        if name in T.SIMPLE and name != "Tensor":
            return T.SIMPLE[name]
        if name == "Function":
            return T.SimpleType("Function")
        if name.startswith("__torch__") or name in self.types:
            if name not in self.types:
                self.types[name] = T.ClassType(name, self.unit, is_module=True)
            return self.types[name]
        facts = self.match(r"\([^()]*\)")  # Float(2, 3, strides=[3, 1], device=cpu)
        return T.TENSOR if facts is None else T.tensor_with(name + facts.group())

    def types_until(self, end: str) -> list[T.Type]:
        """Types between commas, up to a bracket."""
        found = []
        while not self.takes(end):
            found.append(self.type())
            self.takes(",")
        return found

    def made_of(self, name: str) -> T.Type:
        """`Dict(K, V)`, `Future[T]`."""
        parts = self.types_until(")" if self.takes("(") else self.opened())
        if name == "Dict":
            return T.DictType(*parts)
        if name == "Union":
            return T.union(parts)
        if name == "Tuple":
            return T.TupleType(tuple(parts))
        (part,) = parts
        if name == "Optional":
            return T.optional(part)
        return T.ListType(part) if name == "List" else T.FutureType(part)

    def opened(self) -> str:
        """Read a square bracket; what closes it."""
        self.expect("[")
        return "]"

    def named_tuple(self) -> T.Type:
        """`NamedTuple(x : int, y : float)`. The text does not tell its name: it is looked up as
        `NamedTuple(x, y)`, and has none if nothing is found.
        """
        self.expect("(")
        names, types = [], []
        while not self.takes(")"):
            names.append(self.must(r"\w+"))
            self.expect(":")
            types.append(self.type())
            if self.takes("="):
                self.must(r"[^,)]+")
            self.takes(",")
        known = self.types.get(f"NamedTuple({', '.join(names)})")
        return known or T.TupleType(tuple(types), "", tuple(names))
