"""Implementations that are written by hand, by the full names of their schemas.

One is either a function of the runtime values, in the order of the schema, or a piece of Python for
the generated text: `{0} + {1}`. `aten::len.*` stands for all overloads that have no entry of their
own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core.tables import entering

Function = Callable[..., Any]

FUNCTIONS: dict[str, Function] = {}
"""Functions by full name."""
PIECES: dict[str, str] = {}
"""Pieces of Python by full name; `{0}` is the first argument, always a plain name."""
SCOPE: dict[str, Any] = {}
"""What pieces may name beside Python's builtins."""


def qualified(name: str) -> str:
    """The name of an operator, of `aten` where nothing else is said."""
    return name if "::" in name else f"aten::{name}"


implements = entering(FUNCTIONS, qualified)
"""Note a function as the implementation of operators, named without `aten::`."""


def pieces(table: dict[str, str]) -> None:
    """Note pieces of Python: names, several in one text, and the piece."""
    for names, piece in table.items():
        for name in names.split():
            PIECES[qualified(name)] = piece


def functions(table: dict[str, Function]) -> None:
    """Note functions of one expression: names, several in one text, and the function."""
    for names, function in table.items():
        implements(*names.split())(function)


def in_scope(function: Function) -> Function:
    """Let pieces call a function by its name."""
    SCOPE[function.__name__] = function
    return function
