"""The text of an archive's code, as Python's tree: what stands in files and in classes.

Python's own parser reads it; nothing is compiled here, and nothing runs.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections import deque
from typing import Any

from flambeau.jit.ir.source import ScriptError, Source

BEYOND_ASCII = re.compile(r"\\[23][0-7][0-7]")
"""The escape of a byte beyond ASCII."""
DEEPEST = 200
"""Expressions and statements within each other."""
LEAVES = frozenset((ast.Constant, ast.Load, ast.Store))
"""Nodes of Python's tree that hold no others: of long lists, nearly all."""


def parsed(text: str, mode: str) -> Any:
    """Python's tree of a text; ScriptError if it is none."""
    try:
        tree = ast.parse(text, "<archive>", mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ScriptError(f"the code of the archive cannot be parsed: {error}") from None
    _check_depth(tree)
    return tree


def _check_depth(tree: ast.AST) -> None:
    """Refuse trees that would take whoever walks them beyond Python's limit of recursion. Of
    `a and b and c` each part lies within the one before, once it is compiled.
    """
    waiting: deque[tuple[ast.AST, int]] = deque([(tree, 0)])
    while waiting:
        node, depth = waiting.popleft()
        if isinstance(node, (ast.BoolOp, ast.Compare)):
            depth += sum(1 for _ in ast.iter_child_nodes(node)) // 2
        if depth > DEEPEST:
            raise ScriptError(f"the code of the archive is nested more than {DEEPEST} deep")
        waiting.extend((child, depth + 1) for child in ast.iter_child_nodes(node)
                       if child.__class__ not in LEAVES)  # fmt: skip


def statements(source: Source) -> dict[str, tuple[Source, ast.stmt]]:
    """The classes and functions of a file by name. Older files begin with `op_version_set = 1`
    and `import __torch__.models`; neither means anything, and nothing is imported."""
    found: dict[str, tuple[Source, ast.stmt]] = {}
    tree = parsed(source.text, "exec")
    if BEYOND_ASCII.search(source.text):
        _decode(tree)
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            extra = [*node.decorator_list, *getattr(node, "keywords", ())]
            if extra or node.name in found:
                raise ScriptError(f"{source.filename}: {node.name} is defined twice or decorated")
            found[node.name] = (source, node)
        elif not isinstance(node, (ast.Assign, ast.Import, ast.ImportFrom)):
            raise ScriptError(f"{source.filename}: not a definition: {ast.unparse(node)[:80]}")
    return found


def _decode(tree: ast.AST) -> None:
    """Let texts with octal escapes, which archives write for the bytes of UTF-8, be characters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            with contextlib.suppress(UnicodeError):
                node.value = node.value.encode("latin-1").decode()


def declaration(statement: ast.stmt, owner: str) -> tuple[str, ast.expr, ast.expr | None]:
    """`name : type`, `name : Final[type] = value`, `__annotations__["0"] = type`."""
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id, statement.annotation, statement.value
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        target = statement.targets[0]
        if isinstance(target.value, ast.Name) and target.value.id == "__annotations__":
            name = literal(target.slice, owner)
            if isinstance(name, str):
                return name, statement.value, None
    raise ScriptError(f"{owner}: not a declaration: {ast.unparse(statement)[:80]}")


def list_of_names(node: ast.expr, where: str) -> list[str]:
    """A list of names."""
    found = literal(node, where)
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise ScriptError(f"{where}: not a list of names: {ast.unparse(node)[:80]}")
    return found


def literal(node: ast.expr, where: str) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise ScriptError(f"{where}: not a literal: {ast.unparse(node)[:80]}") from None
