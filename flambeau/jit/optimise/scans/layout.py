"""How the array of a place lies to rounds, rows and columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(slots=True)
class Layout:
    """slots: "all" rounds have memory of their own, or every second one ("pair"), or they share
    "one". row: elements from row to row; 0 where all rows are the same. width: elements of a row.
    tasks: each task has its own memory. adds: rounds add to it; it starts with 0.
    """

    slots: str
    row: int
    width: int
    dtype: np.dtype[Any]
    tasks: bool = False
    adds: bool = False

    def shape(self, rounds: int, rows: int, tasks: int) -> tuple[int, ...]:
        """That of new memory."""
        if self.tasks:
            return (tasks, self.width)
        slots = {"all": (rounds,), "pair": (2,), "one": ()}[self.slots]
        return (*slots, rows, self.row) if self.row else (*slots, self.width)

    def offset(self, round_: str) -> str:
        """Where the first row of a task begins in a round, as text."""
        slot = f"rows * {self.row}" if self.row else str(self.width)
        parts = []
        if self.slots == "all":
            parts.append(f"({round_}) * {slot}")
        elif self.slots == "pair":
            parts.append(f"({round_}) % 2 * {slot}")
        if self.row:
            parts.append(f"first * {self.row}")
        if self.tasks:
            parts.append(f"task * {self.width}")
        return " + ".join(parts) or "0"


def given_layout(array: np.ndarray, stacked: bool) -> Layout:
    """That of an argument: a matrix [N, C], or what broadcasts to one; of each round, if it is
    `stacked`.
    """
    shape = array.shape[1:] if stacked else array.shape
    width = shape[-1] if shape else 1
    row = width if len(shape) == 2 and shape[0] != 1 else 0
    return Layout("all" if stacked else "one", row, width, array.dtype)
