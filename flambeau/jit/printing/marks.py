"""Which pieces of a text were written for which places of the original program.

While a text is put together, its pieces stand between marks: `\\x01 7 \\x02 torch.add(x, 1) \\x03`
says that the call was written for place number 7. No name and no literal of code holds the
characters of marks. At the end `taken_apart` separates the text from the places.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from flambeau.jit.ir.source import SourceRange

MARK = re.compile("\x01([0-9]+)\x02|\x03")


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a text: how many bytes stand before it, and what it was written for."""

    offset: int
    place: SourceRange | None


class Marks:
    """The numbers of places."""

    def __init__(self) -> None:
        self.places: dict[SourceRange, int] = {}

    def around(self, text: str, place: SourceRange | None) -> str:
        """The text between marks. Of a place in an archive its original counts, if it is known."""
        if place is None:
            return text
        number = self.places.setdefault(place.original or place, len(self.places))
        return f"\x01{number}\x02{text}\x03"

    def taken_apart(self, text: str) -> tuple[str, list[Piece]]:
        """The text without marks, and the pieces that it is made of."""
        places = list(self.places)
        written: list[str] = []
        pieces: list[Piece] = []
        around: list[SourceRange | None] = [None]
        offset = position = 0
        for mark in MARK.finditer(text):
            offset += _add(text[position : mark.start()], written, pieces, offset, around[-1])
            position = mark.end()
            if mark.group(1):
                around.append(places[int(mark.group(1))])
            else:
                around.pop()
        _add(text[position:], written, pieces, offset, around[-1])
        return "".join(written), pieces


def unmarked(text: str) -> str:
    """The text without marks."""
    return MARK.sub("", text) if "\x03" in text else text


def _add(text: str, written: list[str], pieces: list[Piece], offset: int,
         place: SourceRange | None) -> int:  # fmt: skip
    """Note a piece; one for the same place as the one before belongs to it. Returns its bytes."""
    if text:
        written.append(text)
        if not pieces or pieces[-1].place != place:
            pieces.append(Piece(offset, place))
    return len(text.encode())
