"""Names in generated code: legal ones, each once."""

from __future__ import annotations

import builtins
import keyword
import re
from typing import Any

ILLEGAL = re.compile(r"[^0-9a-zA-Z_]+")
NUMBERED = re.compile(r"(.*)_(\d+)$")
TAKEN = frozenset(("inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree"))
CAPITAL_AFTER_SMALL = re.compile(r"(?<=[a-z])([A-Z])")


class Namespace:
    """Gives every object a name that no other has."""

    def __init__(self) -> None:
        self._used: dict[str, Any] = {}
        self._graph_namespace: dict[Any, str] = {}
        self._counts: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A name like `candidate`, with a number behind it where that is taken."""
        if obj is not None and obj in self._graph_namespace:
            return self._graph_namespace[obj]
        candidate = ILLEGAL.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        found = NUMBERED.match(candidate)
        base = found.group(1) if found else candidate
        number = int(found.group(2)) if found else 0
        if candidate in self._used:
            number = max(number, self._counts.get(base, 0))
        while candidate in self._used or is_illegal(candidate):
            number += 1
            candidate = f"{base}_{number}"
        self._used[candidate] = obj
        self._counts[base] = number
        if obj is not None:
            self._graph_namespace[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Give an object a name that was made before."""
        self._used[name] = obj
        self._graph_namespace[obj] = name

    def copy(self) -> Namespace:
        """Another one with the same names taken."""
        made = Namespace()
        made._used, made._counts = dict(self._used), dict(self._counts)
        return made


def is_illegal(name: str) -> bool:
    """Keywords, builtins, and what generated code has bound already."""
    return keyword.iskeyword(name) or name in vars(builtins) or name in TAKEN


def snake_case(text: str) -> str:
    """`MyThing` as `my_thing`."""
    return CAPITAL_AFTER_SMALL.sub(r"_\1", text).lower()
