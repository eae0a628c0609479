"""What `checkpoint(..., debug=True)` notes: the operators of both runs, and who called them."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

from flambeau._core.modes import Observer, observing
from flambeau._tensor.tensor import Tensor

OURS = (str(Path(__file__).parents[1]), "<flambeau", "<torchscript")
"""Beginnings of the file names of flambeau's own frames."""

FAILED = (
    " An error happened while unpacking tensors; dumping logs of latest computation\n"
    "because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.\n"
)
SECTIONS = ("Operators of the original forward, and where they were called from",
            "Operators of the recomputation, and where they were called from",
            "Operators of the original forward", "Operators of the recomputation")  # fmt: skip


class Noted(Observer):
    """The operators of one run: a line for each, and the stack of the program that called it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.stacks: list[str] = []

    def before(self, name: str, values: tuple[Any, ...], functional: bool | None) -> None:
        """Noted before it runs: the last one of a second run may be cut short."""
        self.lines.append(f"{name}({', '.join(map(_described, values))})")
        frames = [f for f in traceback.extract_stack() if not f.filename.startswith(OURS)]
        self.stacks.append("".join(traceback.format_list(frames)))


class Anew(observing):
    """Look on at one more run, and forget the one before."""

    def __enter__(self) -> Observer:
        noted: Any = self.observer
        noted.lines, noted.stacks = [], []
        return super().__enter__()


class RecomputationLog:
    """The operators of the first run of one checkpoint, and of its latest second run."""

    def __init__(self) -> None:
        self.original, self.again = Noted(), Noted()

    def contexts(self) -> tuple[Any, Any]:
        """What to enter around the first run, and around each second one."""
        return observing(self.original), Anew(self.again)

    def text(self) -> str:
        """Both runs: first with stacks, then in short, to be compared line by line."""
        runs = (self.original, self.again)
        parts = [_with_stacks(run) for run in runs] + ["\n".join(run.lines) for run in runs]
        listed = [
            f"{number}. {title}\n\n{part}"
            for number, (title, part) in enumerate(zip(SECTIONS, parts, strict=True), 1)
        ]
        return FAILED + "\n" + "\n\n".join(listed) + "\n"


def _with_stacks(run: Noted) -> str:
    total = len(run.lines)
    entries = [
        f"{line}   ({number} of {total})\n{stack}"
        for number, (line, stack) in enumerate(zip(run.lines, run.stacks, strict=True), 1)
    ]
    return "\n".join(entries)


def _described(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype}{list(value.shape)}".removeprefix("torch.")
    return repr(value)
