"""Errors of running programs, shown with the program's own lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

from flambeau._core.missing import NotImplementedInFlambeau
from flambeau.jit.errors import Error, OptimisedDifference
from flambeau.jit.ir.graph import Node
from flambeau.jit.ir.source import SourceRange
from flambeau.jit.run.limits import LimitExceeded
from flambeau.jit.run.program import Program
from flambeau.jit.run.support import Raised

HEAD = "The following operation failed in the TorchScript interpreter.\n"


def translated(error: BaseException) -> BaseException:
    """The error that a caller of a program sees, for one that came up while it ran."""
    if isinstance(error, OptimisedDifference):
        return error
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
    """The program's lines that were running, the outermost first; of a long row, both ends. Those
    of an archive are followed by the lines that its code was written for, where it tells.
    """
    places = _places(traceback)
    head = "Traceback of TorchScript"
    originals = []
    for where, name in places:
        original = where.original
        if original is not None:
            originals.append((original, name))
    if not originals:
        return f"{head} (most recent call last):\n{_listed(places)}"
    return (
        f"{head}, serialized code (most recent call last):\n{_listed(places)}\n"
        f"{head}, original code (most recent call last):\n{_listed(originals)}"
    )


def _places(traceback: TracebackType | None) -> list[tuple[SourceRange, str]]:
    """Where the program was, in which function."""
    found: list[tuple[SourceRange, str]] = []
    name = ""
    while traceback is not None:
        program = Program.by_file.get(traceback.tb_frame.f_code.co_filename)
        node = None if program is None else program.nodes[traceback.tb_lineno - 1]
        if program is not None and node is not None:
            name = program.name or name  # what the optimiser put together has none
            if node.kind != "flambeau::Call":
                found += _places_of(node, name)
        traceback = traceback.tb_next
    return found


def _places_of(node: Node, name: str) -> Iterator[tuple[SourceRange, str]]:
    """Where a node came from: through calls that were inlined. Of `raise` torch shows the last
    place alone, as that of the function that was called first.
    """
    for call in node.calls if node.kind != "prim::RaiseException" else ():
        if call.where is not None:
            yield call.where, name
        name = call.function
    if node.source is not None:
        yield node.source, name


def _listed(places: Sequence[tuple[SourceRange, str]]) -> str:
    shown = [_frame(where, name) for where, name in places]
    if len(shown) > 20:
        shown[10:-10] = [f"  … {len(shown) - 20} more calls …\n"]
    return "".join(shown)


def _frame(where: SourceRange, name: str) -> str:
    text = where.highlight()
    if text.startswith("  File "):
        text = text.partition("\n")[2]
    file = where.source.filename or "<string>"
    return f'  File "{file}", line {where.line}, in {name}\n{text}'
