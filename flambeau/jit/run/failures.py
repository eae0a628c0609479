"""Errors of running programs, shown with the program's own lines."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from flambeau._core.missing import NotImplementedInFlambeau
from flambeau.jit.errors import Error
from flambeau.jit.ir.source import SourceRange
from flambeau.jit.run.limits import LimitExceeded
from flambeau.jit.run.program import Program
from flambeau.jit.run.support import Raised

HEAD = (
    "The following operation failed in the TorchScript interpreter.\n"
    "Traceback of TorchScript (most recent call last):\n"
)
NAMED = (KeyError, ValueError, TypeError, AssertionError, ZeroDivisionError)
"""Errors of operators whose class torch names in the message."""


def translated(error: BaseException) -> BaseException:
    """The error that a caller of a program sees, for one that came up while it ran."""
    frames = _frames(error.__traceback__)
    if isinstance(error, Raised):
        name = error.class_name or "RuntimeError"
        return _noted(Error(f"{HEAD}{frames}{name}: {error}\n"), error)
    if isinstance(error, RecursionError):
        reason = "maximum recursion depth exceeded"
    elif isinstance(error, MemoryError):
        reason = f"not enough memory: {error}"
    elif isinstance(error, KeyError):
        reason = f"KeyError: {error.args[0] if error.args else ''}"
    elif isinstance(error, ValueError) and not isinstance(error, UnicodeError):
        reason = str(error)
    else:
        reason = str(error)
    kind = _class_of(error)
    return _noted(kind(f"{HEAD}{frames}RuntimeError: {reason}\n"), error)


def _class_of(error: BaseException) -> Any:
    for known in (LimitExceeded, NotImplementedInFlambeau):
        if isinstance(error, known):
            return known
    if isinstance(error, IndexError) or not isinstance(error, (NotImplementedError, RuntimeError)):
        return RuntimeError
    return NotImplementedError if isinstance(error, NotImplementedError) else RuntimeError


def _noted(made: BaseException, cause: BaseException) -> BaseException:
    made.__cause__ = cause
    made.__suppress_context__ = True
    return made


def _frames(traceback: TracebackType | None) -> str:
    """The program's lines that were running, the outermost first; of a long row, both ends."""
    shown: list[str] = []
    while traceback is not None:
        program = Program.by_file.get(traceback.tb_frame.f_code.co_filename)
        if program is not None:
            node = program.nodes[traceback.tb_lineno - 1]
            if node is not None and node.source is not None:
                shown.append(_frame(node.source, program.name))
        traceback = traceback.tb_next
    if len(shown) > 20:
        shown[10:-10] = [f"  … {len(shown) - 20} more calls …\n"]
    return "".join(shown)


def _frame(where: SourceRange, name: str) -> str:
    text = where.highlight()
    if text.startswith("  File "):
        text = text.partition("\n")[2]
    file = where.source.filename or "<string>"
    return f'  File "{file}", line {where.line}, in {name}\n{text}'
