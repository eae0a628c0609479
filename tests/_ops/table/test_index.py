"""The written index of names is what the rows say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from flambeau._ops.table import write_index

ROOT = Path(__file__).parents[3]


def test_the_index_is_up_to_date() -> None:
    """In a process of its own, because modules that are imported already would not be noted."""
    code = "from flambeau._ops.table import write_index; print(write_index.text(), end='')"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    written = (write_index.FOLDER / "index.py").read_text(encoding="utf-8")
    assert done.stdout == written, "run `python -m flambeau._ops.table.write_index`"
