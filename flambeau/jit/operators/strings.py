"""Methods of texts. They know ASCII letters only, and count bytes, as C++ does.

A byte of a character that takes several is kept as a surrogate, which `encode` turns back.
"""

from __future__ import annotations

import string
from collections.abc import Callable

from flambeau.jit.operators.registry import SCOPE, functions, implements, in_scope, pieces

LETTERS, DIGITS = string.ascii_letters, string.digits
LOWER, UPPER = string.ascii_lowercase, string.ascii_uppercase
TO_UPPER, TO_LOWER = str.maketrans(LOWER, UPPER), str.maketrans(UPPER, LOWER)
SWAP = {**TO_UPPER, **TO_LOWER}
BLANKS = " \t\n\v\f\r"
SCOPE.update(TO_UPPER=TO_UPPER, TO_LOWER=TO_LOWER)

pieces({
    "add.str": "({0} + {1})", "upper": "{0}.translate(TO_UPPER)",
    "lower": "{0}.translate(TO_LOWER)", "join": "{0}.join({1})",
    "len.str": "(len({0}) if {0}.isascii() else len(to_bytes({0})))",
})  # fmt: skip


@in_scope
def to_bytes(text: str) -> bytes:
    """The bytes of a text."""
    return text.encode("utf-8", "surrogateescape")


def from_bytes(data: bytes) -> str:
    """A text of bytes."""
    return data.decode("utf-8", "surrogateescape")


@implements("__getitem__.str", "prim::StringIndex")
def get_item(text: str, index: int) -> str:
    """One byte."""
    data = text if text.isascii() else to_bytes(text)
    size = len(data)
    position = index + size if index < 0 else index
    if not 0 <= position < size:
        raise IndexError(
            f"basic_string::at: __n (which is {position % 2**64}) >= this->size() (which is {size})"
        )
    found = data[position : position + 1]
    return found if isinstance(found, str) else from_bytes(found)


@implements("slice.str")
def slice_text(text: str, start: int | None, end: int | None, step: int) -> str:
    """`text[start:end:step]`."""
    if not step:
        raise RuntimeError("List slice should have non-zero step")
    if text.isascii():
        return text[start:end:step]
    return from_bytes(to_bytes(text)[start:end:step])


@implements("list")
def characters(text: str) -> list[str]:
    """One text for each byte."""
    if text.isascii():
        return list(text)
    return [from_bytes(bytes([byte])) for byte in to_bytes(text)]


@implements("ord")
def ord_(text: str) -> int:
    """The byte of a text of one."""
    data = to_bytes(text)
    if len(data) != 1:
        raise RuntimeError(f"String for ord() must be 1 character, found {len(data)}")
    return data[0]


# ---- tests of all characters


def _all_in(allowed: str) -> Callable[[str], bool]:
    characters_ = frozenset(allowed)
    return lambda text: bool(text) and characters_.issuperset(text)


for name, allowed in {
    "isdigit": DIGITS, "isdecimal": DIGITS, "isnumeric": DIGITS, "isalpha": LETTERS,
    "isalnum": LETTERS + DIGITS, "isspace": BLANKS,
}.items():  # fmt: skip
    implements(name)(_all_in(allowed))

PRINTABLE = frozenset(map(chr, range(32, 127)))


@implements("isprintable")
def is_printable(text: str) -> bool:
    """Whether all characters can be shown."""
    return PRINTABLE.issuperset(text)


@implements("isupper")
def is_upper(text: str) -> bool:
    """Whether there are letters, and all are capital."""
    found = set(text)
    return not found.isdisjoint(UPPER) and found.isdisjoint(LOWER)


@implements("islower")
def is_lower(text: str) -> bool:
    """Whether there are letters, and all are small."""
    found = set(text)
    return not found.isdisjoint(LOWER) and found.isdisjoint(UPPER)


@implements("istitle")
def is_title(text: str) -> bool:
    """Whether each word begins with a capital, and only there are capitals."""
    in_word = found = False
    for character in text:
        if character in UPPER:
            if in_word:
                return False
            in_word = found = True
        elif character in LOWER:
            if not in_word:
                return False
        else:
            in_word = False
    return found


@implements("isidentifier")
def is_identifier(text: str) -> bool:
    """Letters and digits, the first no digit; no underscore first, as torch has it."""
    if not text or text[0] in DIGITS:
        return False
    return frozenset(LETTERS + DIGITS).issuperset(text)


# ---- letters


functions({
    "capitalize": lambda text: text[:1].translate(TO_UPPER) + text[1:].translate(TO_LOWER),
    "swapcase": lambda text: text.translate(SWAP),
})  # fmt: skip


@implements("title")
def title(text: str) -> str:
    """The first letter of each word large."""
    made, in_word = [], False
    for character in text:
        is_letter = character in LETTERS
        made.append(character.translate(TO_LOWER if in_word else TO_UPPER))
        in_word = is_letter
    return "".join(made)


# ---- widths


@implements("center")
def center(text: str, width: int, fill: str) -> str:
    """In the middle."""
    _check_fill(fill)
    return text.center(width, fill)


@implements("ljust")
def ljust(text: str, width: int, fill: str) -> str:
    """At the left."""
    _check_fill(fill)
    return text.ljust(width, fill)


@implements("rjust")
def rjust(text: str, width: int, fill: str) -> str:
    """At the right."""
    _check_fill(fill)
    return text.rjust(width, fill)


def _check_fill(fill: str) -> None:
    if len(fill) != 1:
        raise TypeError("The fill character must be exactly one character long")


functions({
    # Zeros in front, also of a sign, as in torch.
    "zfill": lambda text, width: text.rjust(width, "0"),
    "expandtabs": lambda text, size: text.expandtabs(size),
})  # fmt: skip


# ---- search. The default end, -1, is the end of the text.


def _bounds(text: str, start: int, end: int) -> tuple[int, int]:
    size = len(text)
    start = max(0, start + size) if start < 0 else start
    end = size + 1 + end if end < 0 else end
    return start, min(end, size)


def _found(position: int) -> int:
    if position < 0:
        raise ValueError("substring not found")
    return position


functions({
    "find": lambda text, part, start, end: text.find(part, *_bounds(text, start, end)),
    "rfind": lambda text, part, start, end: text.rfind(part, *_bounds(text, start, end)),
    "index.str": (
        lambda text, part, start, end: _found(text.find(part, *_bounds(text, start, end)))
    ),
    "rindex": lambda text, part, start, end: _found(text.rfind(part, *_bounds(text, start, end))),
    "count": lambda text, part, start, end: text.count(part, *_bounds(text, start, end)),
    "startswith": lambda text, part, start, end: text.startswith(part, *_bounds(text, start, end)),
    "endswith": lambda text, part, start, end: text.endswith(part, *_bounds(text, start, end)),
})  # fmt: skip


# ---- pieces


@implements("split.str")
def split(text: str, separator: str | None, most: int) -> list[str]:
    """Pieces between separators; without one, words, of which `most` takes no notice in torch."""
    if separator is None:
        return "".join(" " if c in BLANKS else c for c in text).split()
    _check_separator(separator)
    return text.split(separator, most)


@implements("rsplit")
def rsplit(text: str, separator: str, most: int) -> list[str]:
    """Pieces, counted from behind."""
    _check_separator(separator)
    return text.rsplit(separator, most)


def _check_separator(separator: str) -> None:
    if not separator:
        raise ValueError("empty separator")


LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e"


@implements("splitlines")
def splitlines(text: str, keep: bool) -> list[str]:
    """Lines: each end of a line counts by itself; with `keep` they stand in the list."""
    made: list[str] = []
    line = ""
    for character in text:
        if character not in LINE_ENDS:
            line += character
            continue
        made += [line, character] if keep else [line]
        line = ""
    return [*made, line] if line else made


@implements("partition")
def partition(text: str, separator: str) -> tuple[str, str, str]:
    """What stands before the first separator, the separator, what stands behind."""
    _check_separator(separator)
    return text.partition(separator)


@implements("rpartition")
def rpartition(text: str, separator: str) -> tuple[str, str, str]:
    """What stands before the last separator, the separator, what stands behind."""
    _check_separator(separator)
    return text.rpartition(separator)


functions({
    "strip": lambda text, characters_: text.strip(characters_),
    "lstrip": lambda text, characters_: text.lstrip(characters_),
    "rstrip": lambda text, characters_: text.rstrip(characters_),
    "replace": lambda text, old, new, most: text.replace(old, new, most),
})  # fmt: skip
