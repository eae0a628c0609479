"""`class Net(torch.jit.ScriptModule)` with methods marked `@torch.jit.script_method`."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from flambeau.nn import Module


def script_method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method as a script method: `code` shows it."""
    function._is_script_method = True  # type: ignore[attr-defined]
    return function


class ScriptModule(Module):
    """A Module whose script methods may be shown as code."""

    @property
    def code(self) -> str:
        """The script methods in normalised form, parameters annotated."""
        methods = inspect.getmembers(type(self), predicate=inspect.isfunction)
        marked = [m for _, m in methods if getattr(m, "_is_script_method", False)]
        return "\n\n".join(_normalised(method) for method in marked) + "\n"


def _normalised(method: Callable[..., Any]) -> str:
    """The method's source without decorators and docstring; a bare parameter is a Tensor."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    definition: Any = tree.body[0]
    definition.decorator_list = []
    for argument in definition.args.args[1:]:
        if argument.annotation is None:
            argument.annotation = ast.Name("Tensor")
    if ast.get_docstring(definition):
        definition.body = definition.body[1:] or [ast.Pass()]
    return ast.unparse(definition)
