"""The bytes of an input as a row of choices: what grammars and forgers build from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Choices that the bytes of an input make; each is the first one when they are used up."""

    def __init__(self, data: bytes) -> None:
        self.bytes = iter(data)
        self.left = len(data)

    def number(self, count: int) -> int:
        """A number below `count`, out of as few bytes as it takes."""
        found, reach = 0, 1
        while reach < count:
            found = found * 256 + next(self.bytes, 0)
            self.left -= 1
            reach *= 256
        return found % count

    def one(self, things: Sequence[T]) -> T:
        """One of several things."""
        return things[self.number(len(things))]

    def text(self, length: int) -> bytes:
        """As many bytes, if there are."""
        self.left -= length
        return bytes(byte for byte, _ in zip(self.bytes, range(length), strict=False))
