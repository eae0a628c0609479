"""Which lines of the original program the code of an archive was written for.

Beside `code/__torch__.py` an archive may hold `code/__torch__.py.debug_pkl`: a pickled tuple of

    ("FORMAT_WITH_STRING_TABLE", texts, entry, …)      or, from older versions of torch, of entries

An entry is `(offset, (source, start, end), tag)`: from that byte of the code on, it was written for
the bytes `start` to `end` of a source, which is `(text, file, first line)`. With a table the text
is a list of numbers of texts, and the file is a number.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pickle import UnpicklingError
from typing import Any

from flambeau.jit.archive.pickle_reader import read_pickle
from flambeau.jit.ir.source import Source, SourceRange

WITH_TABLE = "FORMAT_WITH_STRING_TABLE"


class Origins:
    """The original of each place in a text. The pickle is read when one is first asked for; from
    one that is damaged nothing is known.
    """

    def __init__(self, data: bytes, text: str) -> None:
        self.data = data
        self.text = text
        self.offsets: list[int] | None = None
        self.ranges: list[SourceRange | None] = []

    def __call__(self, start: int) -> SourceRange | None:
        """What the character `start` was written for."""
        if self.offsets is None:
            self.offsets = []
            try:
                self._read()
            except (UnpicklingError, ValueError, TypeError, IndexError, RuntimeError):
                self.offsets, self.ranges = [], []
        place = bisect_right(self.offsets, _bytes_before(self.text, start)) - 1
        return self.ranges[place] if place >= 0 else None

    def _read(self) -> None:
        content = read_pickle(memoryview(self.data), _no_class, None, _no_class)
        table: Sequence[str] | None = None
        if content and content[0] == WITH_TABLE:
            table, content = content[1], content[2:]
        entries = content[0] if len(content) == 1 and table is not None else content
        sources: dict[Any, Source] = {}
        found = []
        for offset, (source, start, end), *_ in entries:
            made = _source(source, table, sources)
            where = None
            if made.text:
                where = SourceRange(
                    made, _characters(made.text, start), _characters(made.text, end)
                )
            found.append((int(offset), where))
        found.sort(key=lambda entry: entry[0])
        self.offsets = [offset for offset, _ in found]
        self.ranges = [where for _, where in found]


def _no_class(name: str) -> Any:
    raise UnpicklingError(f"places in a text are not made of {name}")


def _source(given: Any, table: Sequence[str] | None, known: dict[Any, Source]) -> Source:
    text, file, line = given
    key = (tuple(text), file, line)
    if key not in known:
        if table is not None:
            text, file = "".join(table[index] for index in text), table[file]
        known[key] = Source(str(text), str(file or ""), int(line))
    return known[key]


def _bytes_before(text: str, position: int) -> int:
    return position if text.isascii() else len(text[:position].encode())


def _characters(text: str, position: int) -> int:
    """The number of characters in so many bytes."""
    if text.isascii():
        return int(position)
    return len(text.encode()[:position].decode(errors="ignore"))
