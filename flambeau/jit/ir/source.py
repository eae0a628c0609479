"""Where a piece of a program stands, and how errors show it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Source:
    """A text, and where it comes from: a file and the line that its first line has there.

    origins: of the code of an archive, what the character at a position was written for.
    """

    text: str
    filename: str = ""
    first_line: int = 1
    origins: Callable[[int], SourceRange | None] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SourceRange:
    """Characters `start` to `end` of a source."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        """The line in the file, from 1."""
        return self.source.first_line + self.source.text.count("\n", 0, self.start)

    @property
    def column(self) -> int:
        """The column in the line, from 0."""
        return self.start - (self.source.text.rfind("\n", 0, self.start) + 1)

    @property
    def original(self) -> SourceRange | None:
        """The place in the program that this place in an archive was written for, if known."""
        return None if self.source.origins is None else self.source.origins(self.start)

    @property
    def text(self) -> str:
        """The piece itself."""
        return self.source.text[self.start : self.end]

    @property
    def place(self) -> str:
        """`file.py:12:8`, as graphs show it; empty where there is no file."""
        if not self.source.filename:
            return ""
        return f"{self.source.filename}:{self.line}:{self.column}"

    def highlight(self) -> str:
        """The lines of the range, each underlined, with two lines around: what errors show."""
        text, stop = self.source.text, min(self.end, len(self.source.text))
        start = min(self.start, stop)
        first_line = text.count("\n", 0, start)
        last_line = text.count("\n", 0, max(start, stop - 1))
        lines = text.split("\n")
        if lines and not lines[-1]:
            lines.pop()
        shown = lines[max(0, first_line - 2) : first_line]
        offset = text.rfind("\n", 0, start) + 1
        for line in lines[first_line : last_line + 1]:
            shown.append(line)
            mark = _underline(line, start - offset, stop - offset)
            if mark:
                shown.append(mark)
            offset += len(line) + 1
        if shown and "~" in shown[-1]:
            shown[-1] += " <--- HERE"
        shown += lines[last_line + 1 : last_line + 3]
        return self._heading() + "".join(f"{line}\n" for line in shown)

    def _heading(self) -> str:
        if not self.source.filename:
            return ""
        return f'  File "{self.source.filename}", line {self.line}\n'


def characters_before(text: str) -> Sequence[int]:
    """How many characters end before each byte of a text in UTF-8, and in all."""
    if text.isascii():
        return range(len(text) + 1)
    widths = (len(character.encode(errors="replace")) for character in text)
    found = [index for index, width in enumerate(widths) for _ in range(width)]
    return [*found, len(text)]


def bytes_before(text: str) -> Sequence[int]:
    """How many bytes of UTF-8 stand before each character of a text, and in all."""
    if text.isascii():
        return range(len(text) + 1)
    return [0, *accumulate(len(character.encode(errors="replace")) for character in text)]


@dataclass(frozen=True, slots=True)
class Call:
    """A call whose function's nodes stand in its place: the function's name, where it was."""

    function: str
    where: SourceRange | None


def _underline(line: str, start: int, stop: int) -> str:
    """Marks below the characters `start` to `stop` of a line, its indentation left out."""
    begin = max(start, len(line) - len(line.lstrip(" ")))
    width = min(stop, len(line)) - begin
    return " " * begin + "~" * width if width > 0 else ""


class ScriptError(RuntimeError):
    """A program that TorchScript does not allow: what is wrong, and where."""

    def __init__(self, message: str, where: SourceRange | None = None) -> None:
        self.reason = message
        self.where = where
        shown = f"\n{message}:\n{where.highlight()}" if where is not None else message
        super().__init__(shown)
