"""Layers of flambeau as programs: annotations and methods that stand for those of the class.

A layer whose `forward` is in TorchScript's subset needs none. `layers/` has a class of the same
name for each of the others; a class of the user that inherits from a layer gets them with it.
"""

from __future__ import annotations

import ast
import typing
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from flambeau._core.class_homes import own_module
from flambeau.jit.frontend.source import Definition
from flambeau.jit.library.reader import files_of, parsed

LAYERS = "layers/*.py"


@dataclass(frozen=True)
class Form:
    """The scripted form of a layer. overloads: the declarations of methods that have several."""

    name: str
    annotations: dict[str, Any] = field(default_factory=dict)
    methods: dict[str, Definition] = field(default_factory=dict)
    overloads: dict[str, list[Definition]] = field(default_factory=dict)


def form_of(owner: type) -> Form | None:
    """The form of a class of `flambeau.nn`, if it has one."""
    if not own_module(owner).startswith("flambeau.nn"):
        return None
    return _form(owner.__name__)


@cache
def _form(name: str) -> Form | None:
    path = files_of(LAYERS).get(name)
    if path is None:
        return None
    source, nodes = parsed(path)
    form = Form(name)
    for node in nodes[name][0].body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            form.annotations[node.target.id] = _annotation(node.annotation)
        if isinstance(node, ast.FunctionDef):
            _add_method(form, Definition(node, source))
    return form


def _add_method(form: Form, definition: Definition) -> None:
    name = definition.node.name
    if any(getattr(mark, "id", "") == "overload" for mark in definition.node.decorator_list):
        form.overloads.setdefault(name, []).append(definition)
    else:
        form.methods[name] = definition


def _annotation(node: ast.expr) -> Any:
    """The Python type that an annotation of ours names."""
    from flambeau._tensor.tensor import Tensor

    scope = {**vars(typing), "Tensor": Tensor}
    return eval(compile(ast.Expression(node), "<annotation>", "eval"), scope)  # noqa: S307
