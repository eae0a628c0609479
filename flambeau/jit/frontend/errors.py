"""Errors of syntax that TorchScript does not have, and the calls that led to a compilation."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from flambeau.jit.ir.source import ScriptError, SourceRange


class FrontendError(Exception):
    """A function that cannot be read as a program."""

    __module__ = "flambeau.jit.frontend"

    def __init__(self, source_range: SourceRange, msg: str) -> None:
        self.source_range = source_range
        self.msg = msg
        super().__init__(f"{msg}:\n{source_range.highlight()}{calls_text()}")


class NotSupportedError(FrontendError):
    """Syntax that TorchScript does not have."""

    __module__ = "flambeau.jit.frontend"


class UnsupportedNodeError(NotSupportedError):
    """A kind of statement or expression that TorchScript does not have."""

    __module__ = "flambeau.jit.frontend"


NAMES: dict[type[ast.AST], tuple[str, str]] = {
    ast.FunctionDef: ("function definitions", "def"),
    ast.AsyncFunctionDef: ("async function definitions", "async def"),
    ast.ClassDef: ("class definitions", "class"),
    ast.For: ("for loops", "for"),
    ast.AsyncFor: ("async for loops", "async for"),
    ast.With: ("with statements", "with"),
    ast.AsyncWith: ("async with statements", "async with"),
    ast.Try: ("try blocks", "try"),
    ast.Delete: ("del statements", "del"),
    ast.Raise: ("raise statements", "raise"),
    ast.Assert: ("assertions", "assert"),
    ast.Import: ("import statements", "import"),
    ast.ImportFrom: ("import statements", "from"),
    ast.Global: ("global variables", "global"),
    ast.Nonlocal: ("nonlocal variables", "nonlocal"),
    ast.Break: ("break statements", "break"),
    ast.Continue: ("continue statements", "continue"),
    ast.AnnAssign: ("annotated assignments", " "),
}
"""What errors call a kind of syntax, and the text that they underline."""


# ---- which function called for which one to be compiled


class _Call:
    def __init__(self, name: str) -> None:
        self.name = name
        self.place: SourceRange | None = None  # the call that is being compiled


_calls: list[_Call] = []


@contextmanager
def compiling(name: str) -> Iterator[None]:
    """Note in errors that a function is being compiled, and who called it."""
    _calls.append(_Call(name))
    try:
        yield
    except ScriptError as error:
        if error.where is not None and not getattr(error, "has_calls", False):
            error.has_calls = True  # type: ignore[attr-defined]
            error.args = (f"{error}{calls_text()}",)
        raise
    finally:
        _calls.pop()


def note_place(place: SourceRange) -> None:
    """Say which piece of the function is being compiled now."""
    if _calls:
        _calls[-1].place = place


def calls_text() -> str:
    """The lines that errors show about the callers."""
    lines = []
    for callee, caller in zip(reversed(_calls[1:]), reversed(_calls[:-1]), strict=True):
        lines.append(
            f"'{callee.name}' is being compiled since it was called from '{caller.name}'\n"
        )
        if caller.place is not None:
            lines.append(caller.place.highlight())
    return "".join(lines)
