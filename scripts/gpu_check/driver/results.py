"""What came of the items, in a file, and what items say when something does not hold."""

from __future__ import annotations

import json
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from flambeau._runtime.cuda import errors

RESULTS: dict[str, Any] = {}


class Places:
    """Where the results go."""

    out = Path()


def write() -> None:
    if Places.out.name:
        Places.out.write_text(json.dumps(RESULTS, indent=1), encoding="utf-8")


def item(function: Any) -> Any:
    """Run an item, and note what came of it."""
    name, start = function.__name__, time.perf_counter()
    try:
        found = function()
        RESULTS[name] = {"ok": True, **(found or {})}
    except BaseException as error:  # so that one failure does not stop the rest
        last = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error}".split("\n")[0][:300]
        RESULTS[name] = {"ok": False, "error": text, "where": f"{last.name}:{last.lineno}"}
    RESULTS[name]["seconds"] = round(time.perf_counter() - start, 2)
    print(f"{name:34s} {RESULTS[name]}", flush=True)
    write()


def same(left: Any, right: Any, what: str = "") -> None:
    if not np.array_equal(np.asarray(left), np.asarray(right)):
        raise AssertionError(f"{what}: {str(left)[:80]} is not {str(right)[:80]}")


def raised(codes: Any, call: Any) -> None:
    """The driver's error of a number, or of one of several, is raised."""
    expected = codes if isinstance(codes, tuple) else (codes,)
    try:
        call()
    except errors.CudaError as error:
        assert error.error_code in expected, f"{error.error_code}: {error}"
        return
    raise AssertionError(f"no error {codes}")
