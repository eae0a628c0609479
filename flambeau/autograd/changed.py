"""The error for what a node has saved, and somebody has written to since."""

from __future__ import annotations

from typing import Any

from flambeau._core import modes
from flambeau._core.dtype import BY_NUMPY
from flambeau._core.type_words import type_words


def changed_error(data: Any, count: int, version: int, title: str, index: int) -> RuntimeError:
    """Torch's error for an array that is output `index` of the operator `title`, "" for a leaf."""
    kind = type_words(BY_NUMPY[data.dtype])
    shape = ", ".join(map(str, data.shape))
    source = f", which is output {index} of {title}," if title else ""
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{kind} [{shape}]]{source} is at version {count}; expected "
        f"version {version} instead. {ANOMALY_IS_ON if modes.watch.anomaly else ANOMALY_IS_OFF}"
    )


ANOMALY_IS_OFF = (
    "Hint: enable anomaly detection to find the operation that failed to compute its gradient, "
    "with torch.autograd.set_detect_anomaly(True, check_nan=False)."
)
ANOMALY_IS_ON = (
    "Hint: the backtrace further above shows the operation that failed to compute its gradient. "
    "The variable in question was changed in there or anywhere later. Good luck!"
)
