"""Names of variables in code."""

from __future__ import annotations

import keyword
import re

RESERVED = frozenset((
    "_", "as", "aten", "attribute", "CONSTANTS", "fork", "getattr", "inf", "nan", "infj", "nanj",
    "ops", "__torch__", "and", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "False", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "None", "nonlocal", "not", "or", "pass", "raise", "return", "True", "try",
    "with", "while", "yield", "uninitialized", "unchecked_cast",
))  # fmt: skip
"""Words that mean something to whoever reads the code again."""
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_identifier(name: str) -> bool:
    """Whether an attribute of that name can be written behind a dot."""
    return IDENTIFIER.fullmatch(name) is not None and not keyword.iskeyword(name)


def base_name(name: str) -> str:
    """The variable that a value was: `x` of `x.12`, as an identifier, `_` for each other byte."""
    base, dot, digits = name.rpartition(".")
    if dot and digits.isdecimal():
        name = base
    valid = re.sub(r"[^A-Za-z0-9_]", lambda found: "_" * len(found.group().encode()), name)
    return valid if valid and not valid[0].isdigit() else f"_{valid}"


class UniqueNames:
    """Gives each variable of a function a name: `x`, `x0`, `x1`; `_0`, `_1` to temporaries.

    Numbers go on from one function of a file to the next.
    """

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next: dict[str, int] = {}

    def new_scope(self) -> None:
        """Begin a function: all names are free."""
        self._used = set()

    def unique(self, wanted: str) -> str:
        """The name itself if it is free, else with a number."""
        name = wanted
        while name in self._used or name in RESERVED:
            number = self._next.get(name, 0)
            self._next[name] = number + 1
            name = f"{wanted}{number}"
        self._used.add(name)
        return name
