"""What was found, written after every item, and how much time is left."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scripts.gpu_check.libraries.arrays import REAL

SECONDS = 48
START = time.perf_counter()


class Report:
    """What was found, in a file after every item."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.found: dict[str, Any] = {"real": REAL}

    def run(self, name: str, item: Callable[[], Any], until: float = SECONDS) -> None:
        """Run an item, unless the time is up."""
        began = time.perf_counter()
        if began - START > until:
            self.found[name] = "left out: no time"
        else:
            try:
                self.found[name] = item()
            except Exception as failure:
                self.found[name] = {"FAILED": f"{type(failure).__name__}: {failure}",
                                    "where": traceback.format_exc(limit=-3)}  # fmt: skip
        took = time.perf_counter() - began
        print(f"[{time.perf_counter() - START:5.1f} s] {name} ({took:.1f} s): "
              f"{shown(self.found[name])}", flush=True)  # fmt: skip
        Path(self.path).write_text(json.dumps(self.found, indent=1), encoding="utf-8")


def shown(value: Any) -> str:
    """A line, or a line for each entry."""
    if isinstance(value, dict) and len(value) > 3:
        return "".join(f"\n    {key}: {entry}" for key, entry in value.items())
    return str(value)


def late() -> bool:
    """Whether the time is up."""
    return time.perf_counter() - START > SECONDS
