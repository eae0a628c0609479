"""The source of Python functions, and where each piece of syntax stands in it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from flambeau.jit.ir.source import Source, SourceRange, characters_before

KEYWORDS: dict[type[ast.AST], str] = {
    ast.If: "if", ast.For: "for", ast.While: "while", ast.Return: "return", ast.Raise: "raise",
    ast.Assert: "assert", ast.Delete: "del", ast.With: "with", ast.Pass: "pass",
    ast.Break: "break", ast.Continue: "continue", ast.FunctionDef: "def",
}  # fmt: skip
BRACKETS = (ast.List, ast.Tuple, ast.Dict, ast.JoinedStr, ast.Starred)
UNARY = {ast.Not: "not", ast.USub: "-", ast.Invert: "~", ast.UAdd: "+"}


@dataclass(frozen=True, slots=True)
class Definition:
    """A function as it is compiled. The positions of `node` are those in the text of `source`."""

    node: ast.FunctionDef
    source: Source


def definition_of(function: Any) -> Definition:
    """Read the source of a Python function.

    Raises:
        OSError: there is none, as for what `exec` defined.
        RuntimeError: it is not a function definition, as for a lambda.
    """
    lines, first_line, filename = source_lines(function)
    text = "".join(_aligned(lines))
    plain = textwrap.dedent(text)
    tree = ast.parse(plain)
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
        raise RuntimeError(f"Expected a single top-level function: {filename}:{first_line}")
    indent = len(text.split("\n", 1)[0]) - len(plain.split("\n", 1)[0])
    if indent:
        shift_columns(tree, indent)
    return Definition(tree.body[0], Source(text, filename, first_line))


def source_lines(function: Any) -> tuple[list[str], int, str]:
    """The lines of a function or class, the number of the first one, and the file."""
    try:
        filename = inspect.getsourcefile(function) or ""
        lines, first_line = inspect.getsourcelines(function)
    except OSError as error:
        raise OSError(
            f"Can't get source for {function}. TorchScript requires source access in order to "
            "carry out compilation, make sure original .py files are available."
        ) from error
    return lines, first_line, filename


def _aligned(lines: list[str]) -> list[str]:
    """The lines, none of them further left than `def`: comments and texts may have been."""
    for line in lines:
        if line.lstrip().startswith("def"):
            margin = line.split("def")[0]
            return [margin + other.removeprefix(margin) for other in lines]
    return lines


def shift_columns(tree: ast.AST, indent: int) -> None:
    """Move all positions to the right."""
    for node in ast.walk(tree):
        if hasattr(node, "col_offset"):
            node.col_offset += indent
            node.end_col_offset += indent  # type: ignore[attr-defined]


@lru_cache(maxsize=64)
def line_starts(text: str) -> list[int]:
    """The indices at which the lines of a text begin, and its end."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


class Places:
    """Where the nodes of a syntax tree stand: the token that begins them together with everything
    inside, without closing brackets.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.starts = line_starts(source.text)
        self.known: dict[ast.AST, SourceRange] = {}
        self.columns: dict[int, Sequence[int]] = {}  # of lines: which character each byte is in

    def offset(self, line: int, column: int) -> int:
        """The index in the text of a line (from 1) and a column in UTF-8 bytes."""
        start = self.starts[min(line, len(self.starts)) - 1]
        if self.source.text.isascii():
            return start + column
        if line not in self.columns:
            self.columns[line] = characters_before(self.source.text[start : self.starts[line]])
        return start + self.columns[line][column]

    def token(self, node: Any, length: int) -> SourceRange:
        """The first characters of a node."""
        start = self.offset(node.lineno, node.col_offset)
        return SourceRange(self.source, start, start + length)

    def between(self, left: ast.AST, right: ast.AST) -> SourceRange:
        """What stands between two nodes."""
        return SourceRange(self.source, self.of(left).end, self.of(right).start)

    def of(self, node: Any) -> SourceRange:
        """The place of a node."""
        found = self.known.get(node)
        if found is None:
            found = self.known[node] = self._find(node)
        return found

    def _find(self, node: Any) -> SourceRange:
        first = _beginning(node)
        if isinstance(node, (ast.Constant, ast.Name)):
            return self.token(node, first or 1)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.BoolOp):
            return self.over(node.values)
        if isinstance(node, ast.Compare):
            return self.over([node.left, *node.comparators])
        if isinstance(node, ast.Call):
            return self.over([node.func, *node.args, *(k.value for k in node.keywords)])
        if isinstance(node, (ast.List, ast.Tuple, ast.Dict)):  # may be very long
            items = node.values if isinstance(node, ast.Dict) else node.elts
            return self.over(items[-1:], self.token(node, 1))
        children = list(_children(node))
        if first is not None:
            return self.over(children, self.token(node, first))
        return self.over(children) if children else self.token(node, 1)

    def over(self, nodes: Iterable[ast.AST], first: SourceRange | None = None) -> SourceRange:
        """From the first to the last of several nodes."""
        places = [self.of(node) for node in nodes]
        if first is not None:
            places.append(first)
        start, end = min(p.start for p in places), max(p.end for p in places)
        return SourceRange(self.source, start, end)

    def _subscript(self, node: ast.Subscript) -> SourceRange:
        indices: list[Any] = [node.slice]
        if isinstance(node.slice, ast.Tuple) and node.slice.elts:
            indices = list(node.slice.elts)
        parts: list[ast.AST] = [node.value]
        for index in indices:
            parts += list(_children(index)) if isinstance(index, ast.Slice) else [index]
        place = self.over(parts)
        return SourceRange(self.source, place.start, place.end + 1)

    def _attribute(self, node: ast.Attribute) -> SourceRange:
        base = self.of(node.value)
        name = base.end + 1
        while name < len(self.source.text) and self.source.text[name].isspace():
            name += 1
        return SourceRange(self.source, base.start, name + len(node.attr))


def _beginning(node: Any) -> int | None:
    """The length of the token that a node begins with; None if a child begins it."""
    if type(node) in KEYWORDS:
        return len(KEYWORDS[type(node)])
    if isinstance(node, ast.Name):
        return len(node.id)
    if isinstance(node, ast.arg):
        return len(node.arg)
    if isinstance(node, ast.UnaryOp):
        return len(UNARY[type(node.op)])
    if isinstance(node, BRACKETS):
        return 1
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.DictComp)):
        return 0
    if isinstance(node, ast.Constant):
        return _constant_length(node.value)
    return None


LONGEST_INT = 10_000
"""Bits of the longest integer whose decimal digits are counted."""


def _constant_length(value: Any) -> int:
    if value is Ellipsis:
        return 3
    if isinstance(value, int) and value.bit_length() > LONGEST_INT:
        return value.bit_length() // 4  # as hexadecimal digits: Python refuses to write it out
    return len(str(value)) + isinstance(value, str)


SKIPPED = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)


def _children(node: ast.AST) -> Iterable[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.FunctionDef) and child in node.decorator_list:
            continue
        if isinstance(child, SKIPPED) or isinstance(node, ast.Constant):
            continue
        if isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant):
            continue  # to torch an f-string is a call of `format` with the other parts
        if hasattr(child, "lineno") or any(True for _ in _children(child)):
            yield child
