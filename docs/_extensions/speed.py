"""How fast operators are, beside PyTorch, on the machine that builds the site.

Where PyTorch is installed, a build times some 250 operators of both libraries, each by
`stopwatch.py` in a process of its own, in turns, for a minute or two in all. The times are kept in
`docs/reference/speed.json`, where later builds on the same machine find them while the calls are
the same. `FLAMBEAU_SITE_SPEEDS=1` asks for flambeau's times also where PyTorch is missing, and
`FLAMBEAU_SITE_SPEEDS=0` leaves times out of the pages.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stopwatch import SIZES

from flambeau._ops.table.op import Op
from flambeau._ops.table.schema import REQUIRED

MEASURED = ("pointwise", "rows", "kernel", "view")
ROUNDS = 2
BUDGET = 25.0
"""Seconds for each library in each round; of both rounds the shorter time counts."""
Times = dict[str, Any]


def arguments(op: Op) -> list[Any] | None:
    """What to call a row with: tensors, and the last dim; None where it needs something else."""
    given: list[Any] = []
    for argument in op.schema.arguments:
        if argument.default is not REQUIRED:
            break
        if argument.is_tensor and not argument.is_list and len(given) < 2:
            given.append("xy"[len(given)])
        elif argument.name == "dim" and argument.type == "int":
            given.append([-1] if argument.is_list else -1)
        else:
            return None
    return given or None


def calls(rows: Iterable[tuple[str, list[Op]]]) -> dict[str, list[Any]]:
    """The calls to time, by the name below `torch`; of several rows the first that can be called."""
    found = {}
    for name, ops in rows:
        usable = [given for op in ops if op.kind in MEASURED and (given := arguments(op))]
        if usable:
            found[name] = usable[0]
    return found


def times(folder: Path, wanted: dict[str, list[Any]]) -> Times | None:
    """{"flambeau": {...}, "torch": {...} or None, "machine": "..."}, as kept or measured now; None
    where no times are asked for."""
    libraries = libraries_to_time(os.environ.get("FLAMBEAU_SITE_SPEEDS", ""))
    if not libraries:
        return None
    kept = folder / "speed.json"
    about = {"calls": wanted, "machine": machine(), "libraries": libraries}
    if kept.exists():
        found: Times = json.loads(kept.read_text(encoding="utf-8"))
        if all(found.get(key) == value for key, value in about.items()):
            return found
    others = busy()
    found = {**about, "busy": others, "torch": None, **_timed_in_turns(libraries, wanted)}
    folder.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(found), encoding="utf-8")
    return found


def libraries_to_time(setting: str) -> list[str]:
    """Which libraries pages give times of, by the setting `FLAMBEAU_SITE_SPEEDS`."""
    if setting == "0" or not (setting or has_torch()):
        return []
    return ["flambeau", "torch"] if has_torch() else ["flambeau"]


def _timed_in_turns(libraries: list[str], wanted: dict[str, list[Any]]) -> Times:
    found: Times = {}
    for _ in range(ROUNDS):
        for library in libraries:
            found[library] = faster(found.get(library), _timed(library, wanted))
    return found


def faster(before: Times | None, now: Times) -> Times:
    """Of two measurements of one library the shorter times, of the sizes that either has."""
    if before is None:
        return now
    joined = {}
    for name in {**before["times"], **now["times"]}:
        sides = before["times"].get(name, {}), now["times"].get(name, {})
        joined[name] = {
            size: min(side[size] for side in sides if size in side)
            for size in SIZES
            if any(size in side for side in sides)
        }
    return {**now, "times": joined}


def has_torch() -> bool:
    """Whether PyTorch itself is installed, also where the import hook answers in its place."""
    found = importlib.metadata.distributions(name="torch")
    return any("flambeau" not in distribution.version for distribution in found)


def busy() -> bool:
    """Whether other programs have work for all processors, so that times come out too long."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > (os.cpu_count() or 1)


def machine() -> str:
    """The processor's name, and how many there are."""
    name = platform.processor() or platform.machine()
    about = Path("/proc/cpuinfo")
    if about.exists():
        lines = about.read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        name = names[0] if names else name
    return f"{name}, {os.cpu_count()} logical processors"


def _timed(library: str, wanted: dict[str, list[Any]]) -> dict[str, Any]:
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    script = Path(__file__).with_name("stopwatch.py")
    done = subprocess.run(
        [sys.executable, str(script), library, str(BUDGET)], input=json.dumps(wanted), text=True,
        capture_output=True, check=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def section(name: str, found: Times) -> list[str]:
    """The table of one operator; nothing where it was not timed."""
    ours = found["flambeau"]["times"].get(name)
    if not ours:
        return []
    theirs = found["torch"]["times"].get(name, {}) if found["torch"] else {}
    head = ["shape", "flambeau"]
    if theirs:
        head += [f"PyTorch {found['torch']['version']}", "flambeau takes"]
    rows = [_row(size, ours, theirs) for size in SIZES if size in ours]
    given = ", ".join(str(value) for value in found["calls"][name])
    words = (
        f"``{name}({given})`` of float32, on the machine that built this site: {found['machine']}."
    )
    if not found["torch"]:
        words += " PyTorch was not installed there."
    if found.get("busy"):
        words += " Other programs kept it busy then: these times may be far too long."
    return ["", "Speed", "-----", "", words, "", *_table([head, *rows]), ""]


def _row(size: str, ours: dict[str, float], theirs: dict[str, float]) -> list[str]:
    cells = [f"``{list(SIZES[size])}``", words_of(ours[size])]
    if theirs:
        other = theirs.get(size)
        cells += [words_of(other), f"{ours[size] / other:.2g} ×"] if other else ["—", "—"]
    return cells


def words_of(seconds: float) -> str:
    """`1.25 µs`, `340 µs`, `2.1 ms`."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1 or unit == "µs":
            return f"{seconds * scale:.3g} {unit}"
    raise AssertionError("no unit")


def _table(rows: list[list[str]]) -> list[str]:
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: auto", ""]
    for row in rows:
        lines += [f"   {'* -' if k == 0 else '  -'} {cell}" for k, cell in enumerate(row)]
    return lines
