"""Makes a program small: whatever can be left out while the libraries still differ in the same way
is."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator

Wrong = Callable[[str], bool]
"""Whether a program shows the finding."""


def shrunk(text: str, wrong: Wrong, seconds: float = 20.0) -> str:
    """A smaller program that still shows it; `seconds` of the processor are what it may take."""
    end = time.process_time() + seconds
    known = {text}
    before = ""
    while text != before and time.process_time() < end:
        before = text
        for step in (_without, _unwrapped, _simpler):
            text = _while_smaller(text, step, wrong, end, known)
    return text


def _while_smaller(text: str, step: Callable[[str], Iterator[str]], wrong: Wrong, end: float,
                   known: set[str]) -> str:  # fmt: skip
    found = True
    while found:
        found = False
        for smaller in step(text):
            if time.process_time() > end:
                return text
            if smaller in known:
                continue
            known.add(smaller)
            if wrong(smaller):
                text, found = smaller, True
                break
    return text


def _without(text: str) -> Iterator[str]:
    """Without some statements, many at first, the last ones first."""
    body = ast.parse(text).body
    size = max(len(body) // 2, 1)
    while size:
        for start in range(len(body) - size, -1, -size):
            yield _text([*body[:start], *body[start + size :]])
        size //= 2


def _unwrapped(text: str) -> Iterator[str]:
    """With what a block holds in its place, or without a statement of it."""
    body = ast.parse(text).body
    for place, node in enumerate(body):
        if not isinstance(node, ast.With):
            continue
        yield _text([*body[:place], *node.body, *body[place + 1 :]])
        for inner in range(len(node.body)):
            if len(node.body) > 1:
                kept = [*node.body[:inner], *node.body[inner + 1 :]]
                block = ast.With(node.items, kept)
                yield _text([*body[:place], block, *body[place + 1 :]])


def _simpler(text: str) -> Iterator[str]:
    """With an expression that is a part of it in the place of another, a name in that of a call,
    and without arguments that may be left out."""
    tree = ast.parse(text)
    count = sum(1 for _ in ast.walk(tree))
    for place in range(count):
        for form in range(4):
            other = ast.parse(text)
            node = list(ast.walk(other))[place]
            if _changed(other, node, form):
                yield _text(other.body)


def _changed(tree: ast.AST, node: ast.AST, form: int) -> bool:
    if isinstance(node, ast.Call) and form == 0 and node.keywords:
        node.keywords.pop()
        return True
    if isinstance(node, ast.Call) and form == 1 and _is_method(node.func):
        return _put(tree, node, node.func.value)
    if isinstance(node, ast.Call) and form == 2 and node.args:
        return _put(tree, node, node.args[0])
    if isinstance(node, ast.BinOp) and form in (0, 1):
        return _put(tree, node, (node.left, node.right)[form])
    if isinstance(node, ast.Subscript) and form == 3 and isinstance(node.ctx, ast.Load):
        return _put(tree, node, node.value)
    if isinstance(node, ast.List) and form == 3 and len(node.elts) > 1:
        node.elts.pop()
        return True
    return False


def _is_method(function: ast.expr) -> bool:
    """Whether what is called belongs to a value, not to a part of the library."""
    if not isinstance(function, ast.Attribute):
        return False
    owner = function.value
    return not isinstance(owner, ast.Name) or any(letter.isdigit() for letter in owner.id)


def _put(tree: ast.AST, node: ast.AST, inner: ast.expr) -> bool:
    """Put an expression where another one is. A bare name is no statement."""
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is node and not (isinstance(parent, ast.Expr)):
                setattr(parent, name, inner)
                return True
            if isinstance(value, list) and node in value:
                value[value.index(node)] = inner
                return True
    return False


def _text(body: list[ast.stmt]) -> str:
    module = ast.fix_missing_locations(ast.Module(body, []))
    return ast.unparse(module) + "\n"
