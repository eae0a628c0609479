"""Checks of what a file says, each failure an UnpicklingError."""

from __future__ import annotations

from pickle import UnpicklingError
from types import FunctionType
from typing import Any

MAX_KEY_PARTS = 1000
SMALL_BITS = 64
SIMPLE_KEYS = frozenset((str, int, float, bool, bytes, complex, type(None)))
UNHASHABLE = (list, dict, set, bytearray)


def expect(condition: bool, message: str) -> None:
    """Raise UnpicklingError with `message` unless the condition holds."""
    if not condition:
        raise UnpicklingError(message)


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
        expect(not isinstance(part, UNHASHABLE), f"unhashable type: '{type(part).__name__}'")
        if isinstance(part, tuple | frozenset):
            parts.extend(part)
    return key


def decode(raw: bytes, encoding: str) -> str:
    """Text from the file; bytes that are no text are an UnpicklingError."""
    errors = "surrogatepass" if encoding == "utf-8" else "strict"
    try:
        return raw.decode(encoding, errors)
    except UnicodeDecodeError as error:
        raise UnpicklingError(f"a string of the pickle cannot be decoded: {error}") from None
