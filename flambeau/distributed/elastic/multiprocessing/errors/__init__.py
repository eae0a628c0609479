"""How a failing process tells its launcher what went wrong, and how the launcher tells it on."""

from __future__ import annotations

import functools
import json
import os
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
LINE = 60


class ChildFailedError(Exception):
    """Processes of a program failed; the first of `failures` is what the others failed by."""

    def __init__(self, name: str, failures: Sequence[Any]) -> None:
        self.name, self.failures = name, list(failures)
        super().__init__(self._text())

    def _text(self) -> str:
        if not self.failures:
            return f"\n{self.name} FAILED on another machine"
        first, *others = sorted(self.failures, key=lambda failure: failure.when)
        rest = "\n".join(f"[{i}]:\n{each.describe()}" for i, each in enumerate(others, 1))
        lines = [
            "", "=" * LINE, f"{self.name} FAILED", "-" * LINE, "Failures:",
            rest or "  <NO_OTHER_FAILURES>", "-" * LINE,
            "Root Cause (first observed failure):", f"[0]:\n{first.describe()}", "=" * LINE,
        ]  # fmt: skip
        return "\n".join(lines)


def record(fn: Function, error_handler: Any = None) -> Function:
    """A main function whose errors are shown by the launcher, too."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            _tell(error)
            raise

    return call  # type: ignore[return-value]


def _tell(error: Exception) -> None:
    file = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if file is None:
        return
    told = {
        "message": {
            "message": f"{type(error).__name__}: {error}",
            "extraInfo": {
                "py_callstack": traceback.format_exc(),
                "timestamp": str(int(time.time())),
            },
        }
    }
    Path(file).write_text(json.dumps(told), encoding="utf-8")
