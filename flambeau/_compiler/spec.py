"""Checks of generated kernels: what must hold for every text that `loops` makes.

They run in the tests and with FLAMBEAU_DEBUG set; a failure is an error of the generator.
"""

from __future__ import annotations

import ast
import os
from typing import Any

ACTIVE = bool(os.environ.get("FLAMBEAU_DEBUG"))


class BadKernel(AssertionError):
    """A generated kernel that breaks a rule."""


def check_lines(loop: Any, lines: Any, results: list[Any]) -> None:
    """Every line uses lines before it; every result has a type that its memory can take."""
    if not ACTIVE:
        return
    known = {f"v_{operand.name}" for operand in loop.inputs if operand.fixed is None}
    for name, text, type in lines.lines:
        used = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
        late = {n for n in used if n[:2] in ("v_",) or n[1:].isdigit() and n[0] == "t"} - known
        if late:
            raise BadKernel(f"{loop.title}: {name} = {text} uses {sorted(late)} too early")
        if name in known or type is None:
            raise BadKernel(f"{loop.title}: {name} is defined twice or has no type")
        known.add(name)
    if len(results) != len(loop.outputs):
        raise BadKernel(f"{loop.title}: {len(results)} results for {len(loop.outputs)} outputs")
    for term in results:
        if term.type is None and not loop.compute.is_float:
            raise BadKernel(f"{loop.title}: the result {term.text} has no type")


def check_source(loop: Any, span: str, nest: str) -> None:
    """All names are bound, and `span` stores every output once and nothing else."""
    if not ACTIVE:
        return
    calls = [node for node in ast.walk(ast.parse(span)) if isinstance(node, ast.Call)]
    stores = [ast.unparse(c.args[0]) for c in calls if getattr(c.func, "id", "") == "store"]
    wanted = [f"{operand.name} + i" for operand in loop.outputs]
    if stores != wanted:
        raise BadKernel(f"{loop.title}: stores {stores}, should store {wanted}")
    for source in (span, nest):
        _check_names(loop.title, ast.parse(source).body[0])


def _check_names(title: str, function: Any) -> None:
    """Names are assigned in an earlier line, or are words, types and functions."""
    from flambeau._compiler import language

    known = {argument.arg for argument in function.args.args} | set(vars(language))
    known |= {"range", "INF", "NAN", "span", "turn"}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            known.add(node.id)
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id not in known and node.id[:5] != "math_":
            raise BadKernel(f"{title}: no name {node.id}")
