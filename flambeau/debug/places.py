"""Where in the user's program an operator was called: source line and module."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

PACKAGE = str(Path(__file__).parents[1])
OURS = (PACKAGE, "<flambeau", "<torchscript")
"""Beginnings of the file names of flambeau's own frames."""


class Place(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int
    function: str

    @property
    def code(self) -> str:
        """What stands in that line, if it can be read."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}, in {self.function}"
        return f"{where}: {self.code}" if self.code else where


class Line(NamedTuple):
    """An instruction of the user's program, as cheap to make as can be."""

    code: CodeType
    instruction: int
    number: int
    direct: bool
    """Whether it calls the operator itself, not through a module, an optimizer, ..."""

    @property
    def place(self) -> Place:
        """The line to show."""
        return Place(self.code.co_filename, self.number, self.code.co_name)


OPERATORS = ("<flambeau", *(str(Path(PACKAGE) / name) for name in ("_ops", "_tensor", "debug")))
"""Where operators and methods of Tensor are."""


def line(depth: int = 1) -> Line | None:
    """The innermost instruction that is not flambeau's own."""
    frame: Any = sys._getframe(depth)
    direct = True
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(OURS):
            return Line(frame.f_code, frame.f_lasti, frame.f_lineno, direct)
        direct = direct and name.startswith(OPERATORS)
        frame = frame.f_back
    return None


def caller() -> Place | None:
    """The innermost line that is not flambeau's own."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(OURS):
            return Place(name, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None


class ModulePath:
    """The path of the module that is running, "encoder.layers.0.norm1", kept by global hooks."""

    def __init__(self) -> None:
        self.running: list[Any] = []
        self.names: dict[int, str] = {}
        self.handles: list[Any] = []

    def __enter__(self) -> ModulePath:
        from flambeau.nn.module_hooks import (
            register_module_forward_hook,
            register_module_forward_pre_hook,
        )

        self.handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]
        return self

    def __exit__(self, *exc: object) -> None:
        for handle in self.handles:
            handle.remove()

    def _enter(self, module: Any, given: Any) -> None:
        if not self.running:
            found = module.named_modules(prefix=type(module).__name__)
            self.names = {id(inner): name for name, inner in found}
        self.running.append(module)

    def _leave(self, module: Any, given: Any, result: Any) -> None:
        if module in self.running:
            while self.running.pop() is not module:
                pass

    def __str__(self) -> str:
        if not self.running:
            return ""
        module = self.running[-1]
        return self.names.get(id(module), type(module).__name__)
