"""Examples in docstrings run, and print what they say.

Docstrings are read from the source, so that decorators (an operator's row becomes an object of
another kind) hide none of them.
"""

from __future__ import annotations

import ast
import doctest
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import flambeau

PACKAGE = Path(__file__).parents[1] / "flambeau"
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """(name, text) of the docstrings of a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, DOCUMENTED):
            yield getattr(node, "name", "module"), ast.get_docstring(node) or ""


EXAMPLES = [
    pytest.param(module_name(path), text, id=f"{module_name(path)}.{name}")
    for path in sorted(PACKAGE.rglob("*.py"))
    for name, text in docstrings(path)
    if ">>>" in text
]


@pytest.mark.parametrize(("module", "text"), EXAMPLES)
def test_examples(module: str, text: str, forgotten_names: None):
    names = {**vars(importlib.import_module(module)), "torch": flambeau}
    test = doctest.DocTestParser().get_doctest(text, names, module, None, None)
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    runner.run(test, out=said.append)
    assert not said, "".join(said)
