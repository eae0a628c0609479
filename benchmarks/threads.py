"""How much faster more threads are: both libraries with 1 to 16, by families of operators.

    python benchmarks/threads.py [patterns of group or case] [--threads 1,2,4,8,16] [--seconds 100]
                                 [--json FILE]
    python benchmarks/threads.py --table FILE

Each library has a process of its own and works alone: the other one's threads have gone to sleep by
then. Each figure is the quickest step of some 0.1 s. Cases are those of engine.py, those of all
groups in turns; what the time does not allow is left out. The table gives, for each number of
threads, the geometric means of both libraries' speed-up over one thread, and of torch / flambeau.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import time
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import workloads
from engine import Side

LIBRARIES = ("flambeau", "torch")
LEFT_OUT = ("small",)  # groups without work to share
STEP = 0.1
"""Seconds for a figure."""
LONG = 0.4
"""Seconds of a step from which fewer threads are not tried any more."""
Item = dict[str, Any]


def cases(side: Side, words: list[str]) -> list[tuple[str, str]]:
    """Groups and cases, the first ones of all groups first."""
    groups = [
        [(group, name) for name in side.ask(do="list", group=group)["cases"]]
        for group in workloads.GROUPS
        if group not in LEFT_OUT
    ]
    turns = [case for case in chain(*zip_longest(*groups)) if case is not None]
    return [c for c in turns if not words or any(re.search(w, " ".join(c)) for w in words)]


def measured(side: Side, library: str, case: tuple[str, str], counts: list[int],
             end: float) -> list[Item]:  # fmt: skip
    """A case under one library with each number of threads, from many to few."""
    group, name = case
    side.ask(do="threads", count=max(counts))
    side.ask(do="build", group=group, case=name)
    found: list[Item] = []
    for threads in sorted(counts, reverse=True):
        if time.monotonic() > end or (found and found[-1]["seconds"] > LONG):
            break
        side.ask(do="threads", count=threads)
        seconds = side.ask(do="quickest", seconds=STEP)["seconds"]
        found.append({"group": group, "case": name, "library": library, "threads": threads,
                      "seconds": seconds})  # fmt: skip
    return found


def run(options: argparse.Namespace) -> list[Item]:
    """All figures that the time allows."""
    usable = len(os.sched_getaffinity(0))
    counts = [n for n in map(int, options.threads.split(",")) if n <= usable]
    sides = {library: Side(library, {}) for library in LIBRARIES}
    found: list[Item] = []
    wanted = [cases(side, options.words) for side in sides.values()][0]  # noqa: RUF015  # both begin
    end = time.monotonic() + options.seconds
    for case in wanted:
        if time.monotonic() > end:
            print("left out:", *case)
            continue
        for library, side in sides.items():
            items = measured(side, library, case, counts, end)
            found += items
            figures = (f"{item['threads']}: {item['seconds'] * 1e6:.0f} us" for item in items)
            print(*case, library, *figures, sep="  ", flush=True)
        if options.json:
            Path(options.json).write_text(json.dumps(found, indent=1), encoding="utf-8")
    for side in sides.values():
        side.close()
    return found


def table(items: list[Item]) -> str:
    """The Markdown table of what was found, cases that both libraries have with one thread."""
    times = {(i["group"], i["case"], i["library"], i["threads"]): i["seconds"] for i in items}
    counts = sorted({i["threads"] for i in items})
    lines = [f"| family | {' | '.join(map(str, counts))} |", "|---" * (1 + len(counts)) + "|"]
    for group in dict.fromkeys(i["group"] for i in items):
        names = dict.fromkeys(i["case"] for i in items if i["group"] == group)
        lines.append(f"| {group} | " + " | ".join(
            cell(times, group, list(names), count) for count in counts) + " |")  # fmt: skip
    return "\n".join(lines)


def cell(times: dict[Any, float], group: str, names: list[str], threads: int) -> str:
    """Speed-ups of flambeau and of torch, and how much faster flambeau is."""
    found: list[list[float]] = [[], [], []]
    for name in names:
        both = [(times.get((group, name, library, 1)), times.get((group, name, library, threads)))
                for library in LIBRARIES]  # fmt: skip
        if all(one is not None and many is not None for one, many in both):
            (ours_one, ours), (theirs_one, theirs) = both
            found[0].append(ours_one / ours)  # type: ignore[operator]
            found[1].append(theirs_one / theirs)  # type: ignore[operator]
            found[2].append(theirs / ours)  # type: ignore[operator]
    if not found[0]:
        return ""
    ours_up, theirs_up, ratio = (statistics.geometric_mean(values) for values in found)
    return f"{ours_up:.1f}, torch {theirs_up:.1f}; {ratio:.2f}"


def main() -> None:
    """Measure, or print the table of a file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="regular expressions that choose")
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--json", default="")
    parser.add_argument("--table", default="")
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(Path(options.table).read_text(encoding="utf-8"))))
        return
    print("python benchmarks/threads.py", *sys.argv[1:], flush=True)
    print(table(run(options)))


if __name__ == "__main__":
    main()
