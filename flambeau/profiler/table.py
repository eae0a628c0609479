"""The table of a profile, in PyTorch's columns and widths."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flambeau.profiler.function_event import MICROSECONDS, format_time

WIDTH = 12
SPACE = "  "
FLOP_UNITS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


@dataclass(frozen=True)
class Layout:
    """How wide, how many rows, in which unit; the arguments of `EventList.table`."""

    row_limit: int = 100
    max_src_column_width: int | None = 75
    max_name_column_width: int | None = 55
    max_shapes_column_width: int | None = 80
    header: str | None = None
    top_level_events_only: bool = False
    time_unit: str | None = None


@dataclass(frozen=True)
class Column:
    """A column: its head, its width, and the text for an event."""

    head: str
    width: int
    text: Callable[[Any], str]
    align: str = ">"

    def cell(self, text: str) -> str:
        """A text in the column's width."""
        return f"{text: {self.align}{self.width}}"


def build(events: Any, layout: Layout, *, memory: bool, flops: bool) -> str:
    """The table of a list of FunctionEvents or FunctionEventAvgs, one row each."""
    if not events:
        return ""
    total = sum(event.self_cpu_time_total for event in events)
    columns = [_name_column(events, layout), *_time_columns(total, layout.time_unit)]
    if memory:
        columns += [
            Column("CPU Mem", WIDTH, lambda event: format_memory(event.cpu_memory_usage)),
            Column("Self CPU Mem", WIDTH, lambda event: format_memory(event.self_cpu_memory_usage)),
        ]
    columns.append(Column("# of Calls", WIDTH, lambda event: str(event.count)))
    if any(event.node_id != -1 for event in events):
        columns.append(Column("Node ID", WIDTH, lambda event: str(event.node_id)))
    if any(event.input_shapes for event in events):
        columns.append(_shapes_column(events, layout.max_shapes_column_width))
    source = _source_column(events, layout.max_src_column_width)
    if source is not None:
        columns.append(source)
    if flops and any((event.flops or 0) > 0 for event in events):
        columns.append(_flops_column(events))
    return _text(events, columns, source, total, layout)


def _text(events: Any, columns: list[Column], source: Column | None, total: float,
          layout: Layout) -> str:  # fmt: skip
    line = "".join("-" * column.width + SPACE for column in columns)
    double = "=" * (len(line) - len(SPACE))
    lines = []
    if layout.header is not None:
        lines += [double, layout.header]
    if layout.top_level_events_only:
        lines += [double, "This report only display top-level ops statistics"]
    lines += [line, _row(columns, [column.head for column in columns]), line]
    shown = 0
    for event in events:
        if shown == layout.row_limit:
            break
        if layout.top_level_events_only and event.cpu_parent is not None:
            continue
        shown += 1
        lines.append(_row(columns, [column.text(event) for column in columns]))
        if source is not None:
            lines += _further_lines(event, columns, source)
    lines += [line, f"Self CPU time total: {_time(total, layout.time_unit)}"]
    return "\n".join(lines) + "\n"


def _row(columns: list[Column], texts: list[str]) -> str:
    return "".join(column.cell(text) + SPACE for column, text in zip(columns, texts, strict=True))


def _further_lines(event: Any, columns: list[Column], source: Column) -> list[str]:
    """The rest of an event's stack, a line each, and an empty line."""
    rest = [_trimmed(entry, source.width) for entry in (event.stack or ())[1:]]
    return [_row(columns, [entry if column is source else "" for column in columns])
            for entry in [*rest, ""]]  # fmt: skip


# ---- columns


def _name_column(events: Any, layout: Layout) -> Column:
    limit = layout.max_name_column_width
    longest = max(len(event.key) for event in events) + 4
    width = longest if limit is None else min(longest, limit)

    def name(event: Any) -> str:
        if limit is None or len(event.key) < limit - 3:
            return str(event.key)
        return event.key[: limit - 3] + "..."

    return Column("Name", width, name)


def _time_columns(total: float, unit: str | None) -> list[Column]:
    def self_share(event: Any) -> str:
        event.self_cpu_percent = format_share(event.self_cpu_time_total, total)
        return str(event.self_cpu_percent)

    def share(event: Any) -> str:
        event.total_cpu_percent = 0 if event.is_async else format_share(event.cpu_time_total, total)
        return str(event.total_cpu_percent)

    return [
        Column("Self CPU %", WIDTH, self_share),
        Column("Self CPU", WIDTH, lambda event: _time(event.self_cpu_time_total, unit)),
        Column("CPU total %", WIDTH, share),
        Column("CPU total", WIDTH, lambda event: _time(event.cpu_time_total, unit)),
        Column("CPU time avg", WIDTH, lambda event: _time(event.cpu_time, unit)),
    ]


def _shapes_column(events: Any, limit: int | None) -> Column:
    longest = max(len(str(event.input_shapes)) for event in events) + 4
    width = longest if limit is None else min(longest, limit)
    return Column("Input Shapes", width, lambda event: str(event.input_shapes)[:width])


def _source_column(events: Any, limit: int | None) -> Column | None:
    entries = [entry for event in events for entry in event.stack or ()]
    if not entries:
        return None
    longest = max(map(len, entries)) + 4
    width = longest if limit is None else min(longest, limit)

    def first(event: Any) -> str:
        return _trimmed(event.stack[0], width) if event.stack else ""

    return Column("Source Location", width, first, "<")


def _flops_column(events: Any) -> Column:
    """In the unit that suits the smallest."""
    least = min(event.flops for event in events if (event.flops or 0) > 0)
    place = max(0, min(int(math.log10(least) / 3), len(FLOP_UNITS) - 1))

    def text(event: Any) -> str:
        if (event.flops or 0) <= 0:
            return "--"
        return f"{event.flops * 10 ** (place * -3.0):8.3f}"

    return Column(f"Total {FLOP_UNITS[place]}", WIDTH, text)


def _trimmed(path: str, width: int) -> str:
    """The end of a path that is too long."""
    return path if len(path) <= width else "..." + path[len(path) - width + 3 :]


# ---- numbers


def _time(microseconds: float, unit: str | None) -> str:
    size = dict(MICROSECONDS).get(unit or "")
    return format_time(microseconds) if size is None else f"{microseconds / size:.3f}{unit}"


def format_share(microseconds: float, total: float) -> str:
    """
    >>> format_share(25, 200), format_share(0, 0)
    ('12.50%', 'NaN')
    """
    return f"{microseconds * 100.0 / total:.2f}%" if total else "NaN"


def format_memory(size: int) -> str:
    """
    >>> format_memory(320), format_memory(-2048), format_memory(3 << 20)
    ('320 B', '-2.00 KB', '3.00 MB')
    """
    for unit, factor in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(size) >= factor:
            return f"{size / factor:.2f} {unit}"
    return f"{size} B"
