"""Where a piece of a program stands, and how errors show it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A text, and where it comes from: a file and the line that its first line has there."""

    text: str
    filename: str = ""
    first_line: int = 1


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
        """The lines around the range, with the range underlined: what errors show."""
        text = self.source.text
        first = text.rfind("\n", 0, self.start) + 1
        last = text.find("\n", self.start)
        last = len(text) if last < 0 else last
        before = text[:first].splitlines()[-3:]
        after = text[last + 1 :].splitlines()[:3]
        width = max(1, min(self.end, last) - self.start)
        mark = " " * (self.start - first) + "~" * width + " <--- HERE"
        head = ""
        if self.source.filename:
            head = f'  File "{self.source.filename}", line {self.line}\n'
        return head + "\n".join([*before, text[first:last], mark, *after]) + "\n"


class ScriptError(RuntimeError):
    """A program that TorchScript does not allow: what is wrong, and where."""

    def __init__(self, message: str, where: SourceRange | None = None) -> None:
        self.reason = message
        self.where = where
        shown = f"\n{message}:\n{where.highlight()}" if where is not None else message
        super().__init__(shown)
