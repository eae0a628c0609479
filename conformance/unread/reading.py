"""Which parameters of public functions no code reads."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import torch as reference

import flambeau
from conformance.calls.generated.sources import value_at
from flambeau._core.missing import torch_names
from flambeau._ops.table.op import BY_NAME, Op

HOME = str(Path(flambeau.__file__).parent)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, order=True)
class Unread:
    """A parameter that is taken, and never looked at by the function that takes it."""

    path: str
    parameter: str
    place: str


@cache
def unread() -> list[Unread]:
    """Of every public function, method and class that both libraries have."""
    found: dict[tuple[str, str], Unread] = {}
    for name in sorted(torch_names()):
        for path, code in codes(name):
            for parameter in sorted({*unread_names(code)} - formula_names(path)):
                place = str(Path(code.co_filename).relative_to(HOME))
                key = f"{place}:{code.co_firstlineno}", parameter
                found.setdefault(key, Unread(path, parameter, place))
    return sorted(found.values())


def codes(path: str) -> Iterator[tuple[str, CodeType]]:
    """The code that runs when a public name is called; of classes, that of their methods."""
    value, theirs = value_at(path, flambeau), value_at(path, reference)
    if value is None or theirs is None:
        return
    for row in rows(path, value):
        yield from _code(path, row.body)
    if not isinstance(value, type):
        yield from _code(path, value)
        return
    for name, member in vars(value).items():
        if not _is_private(name) and hasattr(theirs, name):
            yield from _code(f"{path}.{name}", getattr(member, "__func__", member))


def _code(path: str, value: Any) -> Iterator[tuple[str, CodeType]]:
    if not callable(value):
        return
    code = getattr(inspect.unwrap(value), "__code__", None)
    if code is not None and code.co_filename.startswith(HOME):
        yield path, code


def _is_private(name: str) -> bool:
    return name.startswith("_") and name not in ("__init__", "__new__", "__call__")


def rows(path: str, value: Any) -> list[Op]:
    """The rows of a public name, if it is made of such."""
    listed = getattr(value, "ops", None)
    if isinstance(listed, list):
        return list(listed)
    name = path.removeprefix("torch.").removeprefix("Tensor.")
    for known in (name, name.removesuffix("_")):
        if known in BY_NAME:
            return [op for op in BY_NAME[known] if isinstance(op, Op)]
    return []


def formula_names(path: str) -> set[str]:
    """What formulas of gradients are asked for: they read parameters, too."""
    found: set[str] = set()
    for row in rows(path, value_at(path, flambeau)):
        for formula in (row.backward or {}).values():
            found.update(inspect.signature(formula).parameters)
    return found


def unread_names(code: CodeType) -> list[str]:
    """The parameters that a function's text does not mention again."""
    node = _nodes(code.co_filename).get((code.co_firstlineno, code.co_name))
    if node is None or _refuses(node) or isinstance(node, ast.Lambda):
        return []
    given = node.args
    listed = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    listed += [a for a in (given.vararg, given.kwarg) if a]
    inner = [n for part in node.body for n in ast.walk(part) if isinstance(n, ast.Name)]
    named = {n.id for n in inner if not isinstance(n.ctx, ast.Del)}
    if "locals" in named:
        return []
    return [a.arg for a in listed if a.arg not in named and a.arg not in ("self", "cls", "ctx")]


def _refuses(node: ast.FunctionDef) -> bool:
    """Whether a function does nothing but raise, or has no code at all, as protocols have."""
    body = [part for part in node.body if not _is_text(part)]
    return not body or isinstance(body[0], ast.Raise) or _names_itself(body[0])


def _names_itself(part: ast.stmt) -> bool:
    """Whether a statement is the error of what is missing."""
    called = (
        part.value.func if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call) else None
    )
    return isinstance(called, ast.Name) and called.id in ("missing", "refuse")


def _is_text(part: ast.stmt) -> bool:
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)


@cache
def _nodes(file: str) -> dict[tuple[int, str], Any]:
    """Functions by where they begin: with their first decorator."""
    tree = ast.parse(Path(file).read_text("utf-8"))
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            lines = [node.lineno, *(d.lineno for d in node.decorator_list)]
            found[min(lines), node.name] = node
    return found
