"""`torch.utils.benchmark`: how long statements take, and tables that compare them.

timer = Timer("x + y", setup="x = torch.ones(3); y = x", label="add")
Compare([timer.blocked_autorange()]).print()
"""

from __future__ import annotations

from typing import Any

from flambeau._core.absent import absent_class
from flambeau.utils.benchmark.utils.common import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from flambeau.utils.benchmark.utils.compare import Colorize, Compare
from flambeau.utils.benchmark.utils.timer import Language, Timer, timer

__all__ = ["Colorize", "Compare", "Language", "Measurement", "TaskSpec", "Timer",
           "ordered_unique", "select_unit", "set_torch_threads", "timer", "trim_sigfig",
           "unit_to_english"]  # fmt: skip

ABSENT = frozenset(
    "CallgrindStats CopyIfCallgrind FunctionCount FunctionCounts FuzzedParameter "
    "FuzzedSparseTensor FuzzedTensor Fuzzer ParameterAlias".split()
)


def __getattr__(name: str) -> Any:
    if name in ABSENT:
        return absent_class(f"torch.utils.benchmark.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
