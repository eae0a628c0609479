"""A flame graph of a recording: lines of the program, modules, operators and kernels, by time.

The page is one file that needs nothing else: `flame.html` with the tree in it, as JSON.
"""

from __future__ import annotations

import json
import linecache
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from os.path import commonprefix  # of sequences of any kind
from pathlib import Path
from typing import Any

from flambeau.profiler.build import flops_of, keys_of, shapes_of
from flambeau.profiler.recorder import EVALUATE, Record, Recorder

KINDS = ("all", "line", "module", "label", "operator", "backward", "kernel")
KIND_OF = {"cpu_op": "operator", "node": "backward", "user_annotation": "label",
           "module": "module", "kernel": "kernel"}  # fmt: skip
MOST_FRAMES = 20_000
"""How many frames a page holds."""


@dataclass
class Frame:
    """A box of the graph: time in nanoseconds, and what lies in it."""

    name: str
    kind: str
    detail: str = ""
    time: int = 0
    calls: int = 0
    flops: int = 0
    inner: dict[tuple[str, str], Frame] = field(default_factory=dict)

    def child(self, name: str, kind: str, detail: str = "") -> Frame:
        """The box of that name in this one."""
        key = (kind, name)
        found = self.inner.get(key)
        if found is None:
            found = self.inner[key] = Frame(name, kind, detail)
        return found

    def settle(self) -> int:
        """Give lines, which have no time of their own, that of what lies in them."""
        within = sum(frame.settle() for frame in self.inner.values())
        self.time = max(self.time, within)
        return self.time


def tree(recorder: Recorder) -> Frame:
    """All records of a recording, those of one path in one frame."""
    root = Frame("all", "all", time=recorder.ended - recorder.began)
    frames: dict[Record, Frame] = {}
    outside = lines_outside(recorder.records)
    for record in recorder.records:
        around = frames.get(record.parent, root) if record.parent is not None else root
        if record.kind == "node":  # the engine's record around it stands for both
            frames[record] = around
            continue
        name, kind = _name(record)
        if (around.name, around.kind) == (name, kind):  # as in tables: one within itself is one
            frames[record] = around
            continue
        frame = _below_lines(around, record, outside)
        if kind == "backward":
            frame = _below_modules(frame, record.forward)
        frame = frames[record] = frame.child(name, kind)
        frame.time += record.end - record.start
        frame.calls += 1
        frame.flops += sum(flops_of(record, key, shapes_of(record, key)) for key in keys_of(record))
    root.settle()
    return root


def _name(record: Record) -> tuple[str, str]:
    if record.name.startswith(EVALUATE):
        return record.name.removeprefix(EVALUATE).removeprefix("torch::autograd::"), "backward"
    name = keys_of(record)[0].removeprefix("nn.Module: ")
    return name, KIND_OF[record.kind]


def lines_outside(records: Sequence[Record]) -> int:
    """How many of the outermost lines lie around the recorded part, as a notebook's own do.

    All records have them in common. The last line in common is the program's.
    """
    stacks = [record.stack[::-1] for record in records if record.stack]
    return max(0, len(commonprefix(stacks)) - 1)


def _below_lines(frame: Frame, record: Record, outside: int) -> Frame:
    """The frame of the innermost line of the program that a record was called from."""
    lines = list(reversed(record.stack or ()))
    known = list(reversed(record.parent.stack or ())) if record.parent is not None else []
    same = 0
    while same < min(len(lines), len(known)) and lines[same] == known[same]:
        same += 1
    for entry in lines[max(same, outside) :]:
        name, detail = describe_line(entry)
        frame = frame.child(name, "line", detail)
    return frame


def _below_modules(frame: Frame, forward: Record | None) -> Frame:
    """The frame of the module whose forward a node of backward belongs to."""
    modules: list[str] = []
    record = forward.parent if forward is not None else None
    while record is not None:
        if record.kind == "module":
            modules.append(_name(record)[0])
        record = record.parent
    for name in reversed(modules):
        frame = frame.child(name, "module")
    return frame


@cache
def describe_line(entry: str) -> tuple[str, str]:
    """A line of a stack as the name of its frame, with the code, and as what is shown about it."""
    place, _, function = entry.rpartition(": ")
    file, _, number = place.removesuffix(")").rpartition("(")
    code = linecache.getline(file, int(number)).strip()
    name = f"{Path(file).name}:{number}"
    return f"{name}  {code or function}", f"{file}:{number}, in {function}"


# ---- the page


def write(recorder: Recorder, path: str, title: str, facts: str) -> int:
    """Write the page.

    title: its title; facts: a sentence below it.

    Returns:
        How many frames, the smallest, were left out to keep the page small.
    """
    root = tree(recorder)
    least, dropped = _least_time(root)
    if dropped:
        facts += f" The {dropped} smallest frames are left out."
    data = {"kinds": KINDS, "root": _compact(root, least), "title": title, "facts": facts}
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    page = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
    Path(path).write_text(page.replace("/*DATA*/null", text), encoding="utf-8")
    return dropped


def _least_time(root: Frame) -> tuple[int, int]:
    """What a frame must have taken so that there are not too many, and how many have not."""
    times = sorted(_times(root), reverse=True)
    if len(times) <= MOST_FRAMES:
        return 0, 0
    least = times[MOST_FRAMES] + 1
    return least, sum(time < least for time in times)


def _times(frame: Frame) -> list[int]:
    found = [frame.time]
    for inner in frame.inner.values():
        found += _times(inner)
    return found


def _compact(frame: Frame, least: int) -> list[Any]:
    """[name, number of the kind, microseconds, calls, detail, FLOPs, [frames in it]]."""
    inner = [_compact(each, least) for each in frame.inner.values() if each.time >= least]
    return [frame.name, KINDS.index(frame.kind), round(frame.time / 1e3, 1), frame.calls,
            frame.detail, frame.flops, inner]  # fmt: skip
