"""Loads files of programs for PyTorch and for flambeau, and compiles their functions with both."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch as reference

import flambeau
import flambeau.nn.functional

LIBRARIES = {"torch": reference, "flambeau": flambeau}


@cache
def load(path: Path, library: str) -> types.ModuleType:
    """A file of programs as a module; `torch` in it is the library."""
    torch = LIBRARIES[library]
    module = types.ModuleType(f"programs_{path.stem}")  # a name that no other module has
    module.__file__ = str(path)
    names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "Tensor": torch.Tensor}
    module.__dict__.update(names)
    tree = ast.parse(path.read_text("utf-8"))
    tree.body = [node for node in tree.body if not _imports_torch(node)]
    torch.manual_seed(0)
    with entered(module):
        exec(compile(tree, str(path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    return module


def passes_alone(request: Any) -> bool:
    """Whether a test passes in a process of its own. Numbers in names of variables depend on which
    classes share a file, hence on what was compiled before, and long names split lines.
    """
    if "TEST_ALONE" in os.environ:
        return False
    words = [sys.executable, "-m", "pytest", "-q", "-n0", request.node.nodeid]
    done = subprocess.run(words, cwd=request.config.rootpath, capture_output=True, check=False,
                          env={**os.environ, "TEST_ALONE": "1"})  # fmt: skip
    return done.returncode == 0


def _imports_torch(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").startswith("torch")
    return isinstance(node, ast.Import) and node.names[0].name.startswith("torch")


@contextmanager
def entered(module: types.ModuleType) -> Iterator[None]:
    """Let the sources and names of a module be found by its name."""
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        del sys.modules[module.__name__]


def functions(path: Path) -> list[str]:
    """The names of the programs of a file; what begins with `_` only helps them."""
    found = [n for n in ast.parse(path.read_text("utf-8")).body if isinstance(n, ast.FunctionDef)]
    return [node.name for node in found if not node.name.startswith("_")]


def compiled(path: Path, name: str, library: str) -> Any:
    """A program, compiled."""
    module = load(path, library)
    script: Callable[[Any], Any] = LIBRARIES[library].jit.script
    with entered(module), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return script(getattr(module, name))


def refusal(path: Path, name: str, library: str) -> tuple[str, str]:
    """The kind and the text of the error that compiling a program raises."""
    try:
        compiled(path, name, library)
    except Exception as error:  # noqa: BLE001
        kind = type(error).__name__.replace("ScriptError", "RuntimeError")
        return kind, str(error)
    raise AssertionError(f"{library} compiles {name}")


def in_order(text: str) -> str:
    """A graph's text with its values numbered in the order in which they appear."""
    seen: dict[str, str] = {}
    blocks = re.split(r"(?=^with )", text, flags=re.MULTILINE)
    for index, block in enumerate(blocks):
        seen.clear()
        pattern = r'(?<!")%[\w.]+(?=[ ,):])'
        blocks[index] = re.sub(pattern, lambda m: seen.setdefault(m[0], f"%{len(seen)}"), block)
    return "".join(blocks)
