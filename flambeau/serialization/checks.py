"""Checks of what a file says, each failure an UnpicklingError."""

from __future__ import annotations

from pickle import UnpicklingError
from types import FunctionType
from typing import Any

MODULUS = 2**61 - 1
"""Ints below it have hashes of their own."""
MOST_ALIKE = 200
"""How many keys of a container, but for texts, may have one hash."""
MAX_KEY_PARTS = 1000
SHORT_TEXT = 64
SHORT_TUPLE = 8
TUPLE_LEVELS = 3
SMALL_BITS = 64
SIMPLE_KEYS = frozenset((str, int, float, bool, bytes, complex, type(None)))


class CopyBudget:
    """How much a load may still copy, in items of containers or in bytes.

    The memo lets a file name one long list in two bytes and ask for copies of it again and again.
    An honest file spells out what it has copied, so that its own length bounds the sum.
    """

    def __init__(self, amount: int) -> None:
        self.amount = amount

    def spend(self, amount: int) -> None:
        """Take `amount` away. UnpicklingError when no more is left."""
        self.amount -= amount
        expect(self.amount >= 0, "the pickle copies more than its length can justify")


def extent(value: Any, levels: int = TUPLE_LEVELS) -> int:
    """How many items or bytes a call that is given `value` may copy.

    Short texts and short tuples are free; what short tuples hold counts.
    """
    if isinstance(value, tuple):
        if len(value) > SHORT_TUPLE or levels == 0:
            return len(value)
        return sum(extent(item, levels - 1) for item in value)
    if isinstance(value, str):
        return max(0, len(value) - SHORT_TEXT)
    return len(value) if isinstance(value, COPIED) else 0


COPIED = (list, dict, set, frozenset, bytes, bytearray)


def expect(condition: bool, message: str) -> None:
    """Raise UnpicklingError with `message` unless the condition holds."""
    if not condition:
        raise UnpicklingError(message)


def is_dunder(name: str) -> bool:
    """Whether Python and NumPy look for this attribute on their own.

    NumPy takes `__array_interface__` even from an instance, and reads at the address it names.
    """
    return name.startswith("__")


def brief(value: Any) -> str:
    """A short text for an error message.

    `repr` of what a file built can take forever: nested tuples share their parts, and huge ints
    have no decimal form.
    """
    if isinstance(value, str | bytes):
        return repr(value[:60])
    is_small = isinstance(value, int) and value.bit_length() <= SMALL_BITS
    if is_small or value is None or isinstance(value, float | type | FunctionType):
        return repr(value)
    return f"an object of {type(value)}"


def check_key(key: Any) -> Any:
    """`key` if it can be hashed cheaply.

    A tuple that holds itself twice, sixty levels deep, fits a hundred bytes and takes years to
    hash, so the parts of tuples are counted first.
    """
    if type(key) in SIMPLE_KEYS:
        return key
    parts = [key]
    count = 0
    while parts:
        part = parts.pop()
        count += 1
        expect(count <= MAX_KEY_PARTS, f"a key of a dict or set has over {MAX_KEY_PARTS} parts")
        expect(type(part).__hash__ is not None, f"unhashable type: '{type(part).__name__}'")
        if isinstance(part, tuple | frozenset):
            parts.extend(part)
    return key


class Keys:
    """The keys of one container, as they come.

    Python's hashes of numbers are no secret: multiples of 2**61 - 1 all have the hash 0, and each
    of some ten thousand such keys in a megabyte would be compared with all before it.
    """

    __slots__ = ("alike", "container")

    def __init__(self, container: Any = None) -> None:
        self.container = container  # which is kept, so that its address stays its own
        self.alike: dict[int, int] = {}

    def checked(self, key: Any) -> Any:
        """`key`, if it can be hashed cheaply and few before it have the same hash."""
        check_key(key)
        if type(key) is str or (type(key) is int and -MODULUS < key < MODULUS):
            return key
        number = hash(key)
        count = self.alike[number] = self.alike.get(number, 0) + 1
        expect(count <= MOST_ALIKE, f"over {MOST_ALIKE} keys of a dict or set have the same hash")
        return key


def decode(raw: bytes, encoding: str) -> str:
    """Text from the file; bytes that are no text are an UnpicklingError."""
    errors = "surrogatepass" if encoding == "utf-8" else "strict"
    try:
        return raw.decode(encoding, errors)
    except UnicodeDecodeError as error:
        raise UnpicklingError(f"a string of the pickle cannot be decoded: {error}") from None
