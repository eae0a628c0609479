"""How much memory tensors took over time."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from flambeau.profiler.recorder import Recorder

CREATE, DESTROY = 1, 3
CATEGORIES = ("result", "gradient")
COLORS = ("#3b7dd8", "#d9822b")
PAGE = """<!doctype html><meta charset="utf-8"><title>Memory of tensors</title>
<style>:root {{ color-scheme: light dark; font: 14px system-ui, sans-serif }}
body {{ margin: 16px 20px }} h1 {{ font-size: 18px }}
svg {{ width: 100%; height: 70vh }} text {{ fill: currentColor; font-size: 13px }}
b {{ display: inline-block; width: 1em; height: 1em; vertical-align: -2px; margin: 0 .3em 0 1em }}
</style><h1>Memory of tensors on {device}</h1>
<p>At most {peak} bytes at once, of what was made in {seconds:.3f} s.{legend}</p>
<svg viewBox="0 0 1000 500" preserveAspectRatio="none">{areas}</svg>
"""


def write(recorder: Recorder, path: str, device: str) -> None:
    """Write the timeline in the form that the file's name asks for."""
    if path.endswith(".html"):
        Path(path).write_text(page(recorder, device), encoding="utf-8")
        return
    content = json.dumps(changes(recorder) if path.endswith(".raw.json.gz") else points(recorder))
    if path.endswith(".gz"):
        with gzip.open(path, "wt", encoding="utf-8") as file:
            file.write(content)
    else:
        Path(path).write_text(content, encoding="utf-8")


def changes(recorder: Recorder) -> list[tuple[int, int, int, int]]:
    """(nanoseconds, 1: made or 3: destroyed, bytes, number of the category) for each change."""
    return [
        (change.time, CREATE if change.bytes > 0 else DESTROY, abs(change.bytes),
         CATEGORIES.index(change.category))
        for change in recorder.allocations.changes
    ]  # fmt: skip


def points(recorder: Recorder) -> tuple[list[int], list[list[int]]]:
    """Times in nanoseconds, and after each the bytes of each category."""
    times, sizes = [], []
    held = [0] * len(CATEGORIES)
    for change in recorder.allocations.changes:
        held[CATEGORIES.index(change.category)] += change.bytes
        times.append(change.time)
        sizes.append(list(held))
    return times, sizes


def page(recorder: Recorder, device: str) -> str:
    """A page with an area for each category, one upon the other."""
    times, sizes = points(recorder)
    peak = max((sum(each) for each in sizes), default=0)
    seconds = (recorder.ended - recorder.began) / 1e9
    areas: list[Any] = []
    for place in reversed(range(len(CATEGORIES))):
        corners = ["0,500"]
        height = 0.0
        for time, each in zip(times, sizes, strict=True):
            x = 1e3 * (time - recorder.began) / 1e9 / (seconds or 1)
            corners.append(f"{x:.2f},{500 - height:.2f}")
            height = 480 * sum(each[: place + 1]) / (peak or 1)
            corners.append(f"{x:.2f},{500 - height:.2f}")
        corners += [f"1000,{500 - height:.2f}", "1000,500"]
        areas.append(f'<polygon points="{" ".join(corners)}" fill="{COLORS[place]}"/>')
    legend = "".join(f'<b style="background:{color}"></b>{name}s'
                     for name, color in zip(CATEGORIES, COLORS, strict=True))  # fmt: skip
    return PAGE.format(device=device, peak=f"{peak:,}", seconds=seconds, legend=legend,
                       areas="".join(areas))  # fmt: skip
