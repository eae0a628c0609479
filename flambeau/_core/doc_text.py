"""Docstrings of functions that a loop makes."""

from __future__ import annotations


def with_example(text: str, call: str, printed: str) -> str:
    """A docstring with an example: a call, and what it prints (nothing, if that is empty).

    >>> with_example("The sum.", "1 + 1", "2").splitlines()[-2:]
    ['>>> 1 + 1', '2']
    """
    return f"{text}\n\n>>> import flambeau as torch\n>>> {call}\n{printed}".rstrip()
