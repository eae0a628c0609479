"""Tables of measurements: one for each label, a row for each statement and number of threads, a
column for each description."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from flambeau.utils.benchmark.utils import common

__all__ = ["Colorize", "Compare"]

BEST, GOOD, BAD, VERY_BAD = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m"
BOLD, END = "\033[1m", "\033[0m"
WARNING = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100."


class Colorize(enum.Enum):
    """What the colour of a cell compares it with."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def coloured(text: str, value: float, best: float) -> str:
    """A cell, by how far it is from the best one."""
    share = value / best
    for limit, before in ((1.01, BEST + BOLD), (1.1 + 1e-9, GOOD + BOLD), (2, "")):
        if share <= limit and not (limit == 2 and share == 2):
            return f"{before}{text}{END}{END}" if before else text
    return f"{BAD if share < 5 else VERY_BAD + BOLD}{text}{END}{END}"


@dataclass(frozen=True)
class Look:
    """How a table is shown."""

    trim: bool
    colour: Colorize
    warn: bool


@dataclass(frozen=True)
class Row:
    """One line: what it is of, and its measurements by description."""

    name: str
    env: str
    threads: int
    cells: dict[str, common.Measurement]


class Compare:
    """Shows measurements beside each other."""

    def __init__(self, results: list[common.Measurement]) -> None:
        self._results: list[common.Measurement] = []
        self.extend_results(results)
        self._trim_significant_figures = False
        self._colorize = Colorize.NONE
        self._highlight_warnings = False

    def extend_results(self, results: Iterable[common.Measurement]) -> None:
        """Add measurements."""
        for result in results:
            if not isinstance(result, common.Measurement):
                raise ValueError(
                    f"Expected an instance of `Measurement`, got {type(result)} instead."
                )
            self._results.append(result)

    def trim_significant_figures(self) -> None:
        """Show digits that mean something alone."""
        self._trim_significant_figures = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour cells, compared within their column or row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark cells whose times are spread too far."""
        self._highlight_warnings = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def __str__(self) -> str:
        look = Look(self._trim_significant_figures, self._colorize, self._highlight_warnings)
        groups: dict[str, list[common.Measurement]] = {}
        for result in common.Measurement.merge(self._results):
            groups.setdefault(str(result.label), []).append(result)
        return "\n".join([Table(group, look).text() for group in groups.values()])


class Table:
    """The measurements of one label."""

    def __init__(self, results: list[common.Measurement], look: Look) -> None:
        self.look = look
        self.label = results[0].label or ""
        self.columns = common.ordered_unique([str(r.description or "") for r in results])
        several = len(common.ordered_unique([r.env for r in results])) > 1
        rows: dict[tuple[int, str, str], Row] = {}
        for result in results:
            env = f"({result.env})" if several and result.env else ""
            key = result.num_threads, env, result.as_row_name
            row = rows.setdefault(key, Row(result.as_row_name, env, result.num_threads, {}))
            row.cells[str(result.description or "")] = result
        self.rows = sorted(rows.values(), key=lambda row: row.threads)
        self.results = results
        self.unit, self.scale = common.select_unit(min(r.median for r in results))

    def text(self) -> str:
        """The table, and what its numbers are."""
        names = self._names()
        columns = [self._column(description) for description in self.columns]
        lines = ["  |  ".join(line) for line in zip(names, *columns, strict=True)]
        width = max(len(line) for line in self._plain(names))
        shown = [f"[{f' {self.label} '.center(width - 2, '-')}]", lines[0]]
        threads = None
        for row, line in zip(self.rows, lines[1:], strict=True):
            if row.threads != threads:
                threads = row.threads
                head = f"{threads} threads: "
                shown.append(head + "-" * (width - len(head)))
            shown.append(line)
        shown += ["", f"Times are in {common.unit_to_english(self.unit)}s ({self.unit})."]
        if self.look.warn and any(result.has_warnings for result in self.results):
            shown.append(WARNING)
        return "\n".join(shown) + "\n"

    def _names(self) -> list[str]:
        wide = max(len(row.env) for row in self.rows)
        texts = [
            f"  {row.env.ljust(wide)}  {row.name}" if wide else f"      {row.name}"
            for row in self.rows
        ]
        width = max(len(text) for text in texts)
        return [" " * width, *[text.ljust(width) for text in texts]]

    def _plain(self, names: list[str]) -> list[str]:
        """The lines without colours."""
        columns = [self._column(description, colours=False) for description in self.columns]
        return ["  |  ".join(line) for line in zip(names, *columns, strict=True)]

    def _column(self, description: str, colours: bool = True) -> list[str]:
        found = [row.cells.get(description) for row in self.rows]
        there = [result for result in found if result is not None]
        decimals = min(self._decimals(result) for result in there)
        flagged = self.look.warn and any(result.has_warnings for result in there)
        texts = ["" if r is None else self._number(r, decimals, flagged) for r in found]
        widest = max(len(text) for text in texts)
        width = max(len(description), widest)
        cells = [text.rjust(widest).center(width) for text in texts]
        if colours and self.look.colour is not Colorize.NONE:
            cells = [
                cell if result is None else coloured(cell, result.median, self._best(row, there))
                for cell, result, row in zip(cells, found, self.rows, strict=True)
            ]
        return [description.center(width), *cells]

    def _best(self, row: Row, column: list[common.Measurement]) -> float:
        compared = column if self.look.colour is Colorize.COLUMNWISE else row.cells.values()
        return min(result.median for result in compared)

    def _decimals(self, result: common.Measurement) -> int:
        if not self.look.trim:
            return 1
        before = int(np.ceil(np.log10(result.median / self.scale)))
        return max(0, result.significant_figures - before)

    def _number(self, result: common.Measurement, decimals: int, flagged: bool) -> str:
        value = result.median / self.scale
        if self.look.trim:
            value = common.trim_sigfig(value, result.significant_figures)
        text = f"{value:.{decimals}f}"
        if not flagged:
            return text
        share = f" (! {100 * result.iqr / result.median:.0f}%)"
        return text + (share if result.has_warnings else " " * len(" (! XX%)"))
