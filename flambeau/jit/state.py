"""What compiling and tracing keep for the process."""

from __future__ import annotations

import os
from typing import Any


def _enabled(setting: str) -> bool:
    """Whether PYTORCH_JIT lets functions be compiled and traced; else they stay what they are."""
    no, yes = ("0", "0v", "no", "false"), ("1", "1v", "yes", "true")
    if setting not in no + yes:
        raise ValueError("Unknown setting of PYTORCH_JIT. Try using 0 or 1.")
    return setting in yes


enabled = _enabled(os.environ.get("PYTORCH_JIT", "1").lower())
"""Whether functions are compiled and traced at all."""
tracer: Any = None
"""The trace that is being recorded."""
CHECKED = "checked"
optimize: Any = CHECKED if os.environ.get("FLAMBEAU_CHECK_OPTIMISED") == "1" else True
"""Whether functions are optimised before they run: see `torch.jit.optimized_execution`. CHECKED:
they are, and every call is compared with the plain program (`optimise/shadow`)."""
onednn = False
"""What `torch.jit.enable_onednn_fusion` was told."""
fusion_strategy = [("STATIC", 2), ("DYNAMIC", 10)]
"""What `torch.jit.set_fusion_strategy` was told."""
