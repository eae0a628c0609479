"""What compiling and tracing keep for the process."""

from __future__ import annotations

from typing import Any

tracer: Any = None
"""The trace that is being recorded."""
optimize = True
"""Whether functions are optimised before they run: see `torch.jit.optimized_execution`."""
onednn = False
"""What `torch.jit.enable_onednn_fusion` was told."""
fusion_strategy = [("STATIC", 2), ("DYNAMIC", 10)]
"""What `torch.jit.set_fusion_strategy` was told."""
