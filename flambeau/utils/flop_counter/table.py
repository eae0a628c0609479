"""Counts as a table, in thousands, millions and so on."""

from __future__ import annotations

suffixes = ["", "K", "M", "B", "T"]


def get_suffix_str(number: int) -> str:
    """The unit in which a number has two to four digits before the point."""
    index = max(0, min(len(suffixes) - 1, (len(str(number)) - 2) // 3))
    return suffixes[index]


def convert_num_with_suffix(number: int, suffix: str) -> str:
    """A number in a unit, with three decimals in all but the smallest."""
    index = suffixes.index(suffix)
    return f"{number / 1000**index:.3f}{suffix}" if index else str(number)


def convert_to_percent_str(num: int, denom: int) -> str:
    """A share in percent."""
    return f"{num / denom:.2%}" if denom else "0%"


HEADER = ("Module", "FLOP", "% Total")


def text_of(rows: list[tuple[str, str, str]]) -> str:
    """Three columns, the first on the left, the others on the right."""
    widths = [
        max(len(title) + 2, *(len(row[place]) for row in rows))
        for place, title in enumerate(HEADER)
    ]

    def line(cells: tuple[str, str, str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        return "  ".join([first[0].ljust(first[1]), *[cell.rjust(w) for cell, w in others]])

    rules = "  ".join(["-" * width for width in widths])
    return "\n".join([line(HEADER), rules, *[line(row) for row in rows]])
