"""No function of flambeau is nearly the text of PyTorch's function of the same name.

The installed PyTorch is read by this program alone: docstrings, annotations and the names of what
is local count for nothing, so that renaming makes no text another. Few statements are too few to
tell: `return self.weight` has one form.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

import pytest
import torch

import flambeau

LIMIT = 0.8
STATEMENTS = 6
FORCED = {
    "nn/module_convert.py train": "a check, a field, the same for the modules below",
    "profiler/event_list.py total_average": "a sum over events of any name",
}
"""Functions whose signatures or files' formats leave one form, and why."""
NEVER_OURS = ("test", "testing", "_inductor", "_dynamo", "onnx", "_vendor", "include", "lib")
"""Folders of PyTorch that nothing of ours could stem from."""


@dataclass(frozen=True)
class Text:
    """A function: where it stands, its tokens."""

    place: str
    tokens: tuple[str, ...]


class Plain(ast.NodeTransformer):
    """Takes away docstrings and annotations, and numbers the names that are local."""

    def __init__(self, local: dict[str, str]) -> None:
        self.local = local

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:  # noqa: N802
        node.returns = None
        node.decorator_list = []
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(self.local.get(node.arg, node.arg))

    def visit_Name(self, node: ast.Name) -> ast.AST:  # noqa: N802
        return ast.Name(self.local.get(node.id, node.id), node.ctx)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:  # noqa: N802
        if node.value is None:
            return ast.Pass()
        return self.generic_visit(ast.Assign([node.target], node.value))


def local_names(node: ast.FunctionDef) -> dict[str, str]:
    """Arguments and variables of a function, in the order in which they appear."""
    found: dict[str, str] = {}
    for part in ast.walk(node):
        name = ""
        if isinstance(part, ast.arg):
            name = part.arg
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            name = part.id
        if name and name != "self":
            found.setdefault(name, f"v{len(found)}")
    return found


def tokens_of(node: ast.FunctionDef) -> tuple[str, ...]:
    """The words of a function without what does not count."""
    plain = ast.fix_missing_locations(Plain(local_names(node)).visit(node))
    lines = io.StringIO(ast.unparse(plain)).readline
    return tuple(token.string for token in tokenize.generate_tokens(lines) if token.string.strip())


def statements(node: ast.FunctionDef) -> int:
    """How many statements a function has, those inside others included. A docstring is none, nor
    is a field that is set to the argument of its name.
    """
    found = [part for part in ast.walk(node) if isinstance(part, ast.stmt)]
    count = len(found) - 1 - sum(map(takes_argument, found))
    return count - (ast.get_docstring(node, clean=False) is not None)


def takes_argument(node: ast.stmt) -> bool:
    """`self.size = size`, `self.size = int(size)`, or `super().__init__(…)`."""
    if isinstance(node, ast.Expr):
        return ast.unparse(node).startswith("super().__init__(")
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
        return False
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    names = {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
    return isinstance(target, ast.Attribute) and target.attr in names


def functions(root: Path, skipped: tuple[str, ...] = ()) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The larger functions below a folder, and where they stand."""
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        if parts[0] in skipped:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and statements(node) >= STATEMENTS:
                yield f"{'/'.join(parts)} {node.name}", node


def alike(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    """How much of two texts is the same, 0 to 1; 0 as soon as it is surely below the limit."""
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    if matcher.real_quick_ratio() <= LIMIT or matcher.quick_ratio() <= LIMIT:
        return 0.0
    return matcher.ratio()


@pytest.fixture(scope="module")
def theirs() -> dict[str, set[Text]]:
    """PyTorch's functions by name."""
    wanted = {node.name for _, node in functions(Path(flambeau.__file__).parent)}
    found: dict[str, set[Text]] = defaultdict(set)
    for place, node in functions(Path(torch.__file__).parent, NEVER_OURS):
        if node.name in wanted:
            found[node.name].add(Text(place, tokens_of(node)))
    return found


def too_near(theirs: dict[str, set[Text]]) -> list[str]:
    """Our functions that are too near to one of PyTorch's, and which."""
    found = []
    for place, node in functions(Path(flambeau.__file__).parent):
        if place in FORCED or node.name not in theirs:
            continue
        ours = tokens_of(node)
        share, other = max((alike(ours, text.tokens), text.place) for text in theirs[node.name])
        if share > LIMIT:
            found.append(f"{place}: {share:.0%} of {other}")
    return found


def test_no_function_is_nearly_another(theirs: dict[str, set[Text]]) -> None:
    assert sum(map(len, theirs.values())) > 500, "PyTorch's functions were not found"
    assert too_near(theirs) == []


def test_the_measure_sees_through_names() -> None:
    one, other = (
        ast.parse(text).body[0]
        for text in (
            'def f(x: int):\n    """Doc."""\n    y: int = x + 1\n    return y * 2',
            "def f(a):\n    b = a + 1\n    return b * 2",
        )
    )
    assert isinstance(one, ast.FunctionDef) and isinstance(other, ast.FunctionDef)
    assert alike(tokens_of(one), tokens_of(other)) == 1.0
