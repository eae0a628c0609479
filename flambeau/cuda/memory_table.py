"""`torch.cuda.memory_summary()`: the counters as a table."""

from __future__ import annotations

from typing import Any

from flambeau.cuda.devices import index_of

WIDTH = 75
KINDS = ("current", "peak", "allocated", "freed")
ROWS = (
    ("allocated_bytes", "Allocated memory"), ("active_bytes", "Active memory"),
    ("requested_bytes", "Requested memory"), ("reserved_bytes", "GPU reserved memory"),
    ("inactive_split_bytes", "Non-releasable memory"), ("allocation", "Allocations"),
    ("active", "Active allocs"), ("segment", "GPU reserved segments"),
    ("inactive_split", "Non-releasable allocs"),
)  # fmt: skip
OVERSIZE = (("oversize_allocations", "Oversize allocations"),
            ("oversize_segments", "Oversize GPU segments"))  # fmt: skip
UNITS = ("B  ", "KiB", "MiB", "GiB", "TiB", "PiB")
COUNT_UNITS = (" ", "K", "M")
ENOUGH = 768
"""From this many units on the next larger unit is written."""


def size_text(size: int, reference: int) -> str:
    """Bytes in the unit in which `reference` is readable."""
    unit = 0
    while reference >= ENOUGH * 1024 and unit + 1 < len(UNITS):
        reference, size, unit = reference // 1024, size // 1024, unit + 1
    return f"{size:6d} {UNITS[unit]}"


def count_text(count: int, reference: int) -> str:
    """A number, in thousands or millions where `reference` is long."""
    unit = 0
    while reference >= ENOUGH * 1000 and unit + 1 < len(COUNT_UNITS):
        reference, count, unit = reference // 1000, count // 1000, unit + 1
    return f"{count:7d} {COUNT_UNITS[unit]} "


def _cells(stats: dict[str, Any], prefix: str, reference: str, is_size: bool) -> str:
    text = size_text if is_size else count_text
    return "|".join(
        [f" {text(stats[f'{prefix}.{kind}'], stats[f'{reference}.{kind}'])} " for kind in KINDS]
    )


def _rule(letter: str) -> str:
    return "|" + letter * WIDTH + "|"


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The counters of a device's allocator as a table for people.

    Args:
        device: which device, by default the current one.
        abbreviated: without the rows of the two pools.
    """
    from flambeau.cuda.memory import memory_stats

    index = index_of(device)
    stats = memory_stats(index)
    title = f"PyTorch CUDA memory summary, device ID {index}"
    ooms, retries = stats["num_ooms"], stats["num_alloc_retries"]
    lines = [
        _rule("="),
        f"| {title:^{WIDTH - 1}}|",
        _rule("-"),
        f"|            CUDA OOMs: {ooms:<13d}|        cudaMalloc retries: {retries:<10d}|",
        _rule("="),
        "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |",
    ]
    for name, text in ROWS:
        lines.append(_rule("-"))
        pools = (("all", text), ("large_pool", "      from large pool"),
                 ("small_pool", "      from small pool"))  # fmt: skip
        for pool, label in pools[:1] if abbreviated else pools:
            cells = _cells(stats, f"{name}.{pool}", f"{name}.all", name.endswith("bytes"))
            lines.append(f"| {label:<21} |{cells}|")
    for name, text in OVERSIZE:
        lines += [_rule("-"), f"| {text:<21} |{_cells(stats, name, name, False)}|"]
    return "\n".join([*lines, _rule("="), ""])
