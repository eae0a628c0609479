"""`torch.jit.CompilationUnit`: functions given as text."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import Any

from flambeau.jit.frontend.source import Definition
from flambeau.jit.ir import function as ir
from flambeau.jit.ir.source import Source
from flambeau.jit.modules.functions import ScriptFunction
from flambeau.jit.modules.resolvers import PythonScope


class _Asked(PythonScope):
    """Names that a function of the user's knows."""

    def __init__(self, rcb: Callable[[str], Any]) -> None:
        super().__init__()
        self.rcb = rcb

    def find(self, name: str) -> Any:
        found = self.rcb(name)
        return super().find(name) if found is None else found


class CompilationUnit:
    """Functions that are compiled from text; each is an attribute of its name."""

    __module__ = "flambeau.jit"

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        self._unit = ir.CompilationUnit()
        if lang is not None:
            self._define(lang, sys._getframe(_frames_up + 1))

    def define(self, src: str, rcb: Any = None, _frames_up: int = 0) -> None:
        """Add the functions of a text; what names stand for is asked of `rcb`, where it is given.

        Raises:
            RuntimeError: TorchScript does not allow one of them.
        """
        if rcb is not None and not callable(rcb):
            raise TypeError("define(): incompatible function arguments: rcb must be a callable, "
                            f"not {type(rcb).__name__}")  # fmt: skip
        self._define(src, sys._getframe(_frames_up + 1), rcb)

    def _define(self, text: str, frame: Any, rcb: Any = None) -> None:
        from flambeau.jit.modules.methods import function_from

        scope = PythonScope(frame.f_locals, frame.f_globals) if rcb is None else _Asked(rcb)
        source = Source(text, "<string>")
        made = []
        for node in ast.parse(text).body:
            if not isinstance(node, ast.FunctionDef):
                raise RuntimeError("expected a function definition")
            definition = Definition(node, source)
            made.append(function_from(definition, scope, node.name, self._unit))
        for function in made:
            function.ensure_defined()

    def find_function(self, name: str) -> ScriptFunction | None:
        """The function of a name, or None."""
        found = self._unit.functions.get(name)
        return None if found is None else ScriptFunction(found)

    def get_functions(self) -> list[ScriptFunction]:
        """All functions."""
        return [ScriptFunction(function) for function in self._unit.functions.values()]

    def __getattr__(self, name: str) -> ScriptFunction:
        found = None if name.startswith("__") else self.find_function(name)
        if found is None:
            raise AttributeError(f"'CompilationUnit' has no attribute '{name}'")
        return found
