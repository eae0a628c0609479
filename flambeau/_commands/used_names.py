"""Which dotted names below `torch` a piece of source uses, found by reading it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

ROOT = "torch"


def names_in(source: str) -> Iterator[str]:
    """Every use of a dotted name below torch; none for source that does not parse.

    Names are followed through imports, `import torch.nn as nn` and `from torch import nn`
    alike, wherever they stand; a name bound in any other way is not.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from _plain_import(node, bound)
        elif isinstance(node, ast.ImportFrom):
            yield from _from_import(node, bound)
    yield from _uses(tree, bound)


def _is_torch(dotted: str) -> bool:
    return dotted == ROOT or dotted.startswith(f"{ROOT}.")


def _plain_import(node: ast.Import, bound: dict[str, str]) -> Iterator[str]:
    for alias in node.names:
        if not _is_torch(alias.name):
            continue
        bound[alias.asname or ROOT] = alias.name if alias.asname else ROOT
        if alias.name != ROOT:
            yield alias.name


def _from_import(node: ast.ImportFrom, bound: dict[str, str]) -> Iterator[str]:
    module = node.module or ""
    if node.level or not _is_torch(module):
        return
    for alias in node.names:
        dotted = module if alias.name == "*" else f"{module}.{alias.name}"
        if alias.name != "*":
            bound[alias.asname or alias.name] = dotted
        yield dotted


def _uses(node: ast.AST, bound: dict[str, str]) -> Iterator[str]:
    """The longest chain of attributes at each place: of `torch.nn.init.zeros_` only the whole."""
    dotted = _chain(node, bound)
    if dotted is not None:
        yield dotted
        return
    for child in ast.iter_child_nodes(node):
        yield from _uses(child, bound)


def _chain(node: ast.AST, bound: dict[str, str]) -> str | None:
    """`a.b.c` as what it means, if `a` was imported from torch."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not parts or not isinstance(node, ast.Name) or node.id not in bound:
        return None
    return ".".join([bound[node.id], *reversed(parts)])
