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
from contextlib import suppress
from pickle import UnpicklingError
from typing import Any

from flambeau.jit.archive.pickle_reader import read_pickle
from flambeau.jit.archive.pickle_writer import ValuePickler
from flambeau.jit.ir import types as T
from flambeau.jit.ir.source import Source, SourceRange, bytes_before, characters_before
from flambeau.jit.printing.marks import Piece
from flambeau.serialization.checks import expect
from flambeau.serialization.pickler import SavedStorages

WITH_TABLE = "FORMAT_WITH_STRING_TABLE"
EXPANSION = 200
"""How many characters of sources a byte of the pickle may stand for: they share lines."""
DAMAGED = (UnpicklingError, ValueError, TypeError, LookupError, AttributeError, RuntimeError)
"""What reading raises where something else is found than places."""
_SOURCE = T.TupleType((T.ListType(T.INT), T.INT, T.INT))
ENTRY = T.TupleType((T.INT, T.TupleType((_SOURCE, T.INT, T.INT)), T.INT))
"""The type of an entry."""


class Origins:
    """The original of each place in a text. The pickle is read when one is first asked for; from
    one that is damaged nothing is known.
    """

    def __init__(self, data: bytes, text: str) -> None:
        self.data = data
        self.text = text
        self.bytes: Sequence[int] = ()  # before each character of the text
        self.offsets: list[int] | None = None
        self.ranges: list[SourceRange | None] = []

    def __call__(self, start: int) -> SourceRange | None:
        """What the character `start` was written for."""
        if self.offsets is None:
            self.offsets, self.bytes = [], bytes_before(self.text)
            with suppress(*DAMAGED):
                self._read()
        place = bisect_right(self.offsets, self.bytes[start]) - 1
        return self.ranges[place] if place >= 0 else None

    def _read(self) -> None:
        content = read_pickle(memoryview(self.data), _no_class, None, _no_class)
        table: Sequence[str] | None = None
        if content and content[0] == WITH_TABLE:
            table, content = content[1], content[2:]
        entries = content[0] if len(content) == 1 and table is not None else content
        sources = _Sources(table, EXPANSION * len(self.data))
        found = []
        for offset, (source, start, end), *_ in entries:
            made, characters = sources.source(source)
            first, last = (characters[min(max(n, 0), len(characters) - 1)] for n in (start, end))
            found.append((_number(offset), SourceRange(made, first, last) if made.text else None))
        found.sort(key=lambda entry: entry[0])
        self.offsets = [offset for offset, _ in found]
        self.ranges = [where for _, where in found]


class _Sources:
    """The sources that the entries name, each made once. most: characters of all, together."""

    def __init__(self, table: Sequence[str] | None, most: int) -> None:
        self.table = table
        self.room = most
        self.known: dict[Any, tuple[Source, Sequence[int]]] = {}

    def source(self, given: Any) -> tuple[Source, Sequence[int]]:
        """A source, and how many characters stand before each of its bytes."""
        text, file, line = given
        key = (id(text), file, line)  # the entries of a function share one list of lines
        if key not in self.known:
            if self.table is not None:
                self.room -= sum(len(self.table[index]) for index in text)
                expect(self.room >= 0, "the texts of the original program are too long")
                text, file = "".join(self.table[index] for index in text), self.table[file]
            made = Source(str(text), str(file or ""), _number(line))
            self.known[key] = made, characters_before(made.text)
        return self.known[key]


def _number(value: Any) -> int:
    expect(type(value) is int and abs(value) < 1 << 63, "a place in a text is a number")
    return value  # type: ignore[no-any-return]


# ---- writing


def places_pickle(pieces: Sequence[Piece]) -> bytes:
    """The pickle that tells what the pieces of a text were written for."""
    table = _Table()
    entries = tuple(table.entry(piece) for piece in pieces)
    kind = T.TupleType((T.STRING, T.TupleType((T.STRING,) * len(table.texts)),
                        T.TupleType((ENTRY,) * len(entries))))  # fmt: skip
    pickler = ValuePickler(SavedStorages(), lambda type: type.annotation)
    return pickler.dump((WITH_TABLE, tuple(table.texts), entries), kind)


class _Table:
    """Texts, sources and places, each once."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {"": 0}
        self.sources: dict[Source | None, Any] = {None: ([], 0, 0)}
        self.tags: dict[SourceRange | None, int] = {}
        self.bytes: dict[Source, Sequence[int]] = {}  # before each character

    def text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    def source(self, source: Source) -> Any:
        """The lines, the file, the number of the first line."""
        if source not in self.sources:
            lines = [self.text(line) for line in source.text.splitlines(keepends=True)]
            self.sources[source] = (lines, self.text(source.filename), source.first_line)
        return self.sources[source]

    def entry(self, piece: Piece) -> Any:
        """The offset, the place, and the number of the place."""
        tag = self.tags.setdefault(piece.place, len(self.tags))
        if piece.place is None:
            return (piece.offset, (self.sources[None], 0, 0), tag)
        source, start, end = piece.place.source, piece.place.start, piece.place.end
        if source not in self.bytes:
            self.bytes[source] = bytes_before(source.text)
        where = (self.bytes[source][start], self.bytes[source][min(end, len(source.text))])
        return (piece.offset, (self.source(source), *where), tag)


def _no_class(name: str) -> Any:
    raise UnpicklingError(f"places in a text are not made of {name}")
