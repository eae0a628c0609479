"""Reads the programs of the library: a file is parsed when one of its names is first asked for."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

from flambeau.jit.frontend.source import Definition
from flambeau.jit.ir.source import Source

HERE = Path(__file__).parent
PLACES = {"torch.functional": "beside/torch_*.py",
          "torch.nn.modules.activation": "layers/attention.py",
          "torch.nn.modules.transformer": "layers/transformer.py"}  # fmt: skip
"""Modules of torch, and the files with their functions."""
NAME = re.compile(r"^(?:def|class) (\w+)", re.MULTILINE)


@cache
def files_of(pattern: str) -> dict[str, Path]:
    """The functions and classes that stand at the margin of some files, and which file has them."""
    found = {}
    for path in sorted(HERE.glob(pattern)):
        for name in NAME.findall(path.read_text("utf-8")):
            found[name] = path
    return found


@cache
def parsed(path: Path) -> tuple[Source, dict[str, list[Any]]]:
    """The text of a file, and its functions and classes; overloads stand before their function."""
    text = path.read_text("utf-8")
    found: dict[str, list[Any]] = {}
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.setdefault(node.name, []).append(node)
    return Source(text, str(path)), found


@cache
def definitions(place: str, name: str) -> tuple[Definition, ...]:
    """A function of `torch.nn.functional` and the like, the declarations of its overloads first;
    none if it is no program.
    """
    path = files_of(PLACES[place]).get(name) if place in PLACES else None
    if path is None:
        return ()
    source, nodes = parsed(path)
    found = (node for node in nodes[name] if isinstance(node, ast.FunctionDef))
    return tuple(Definition(node, source) for node in found)
