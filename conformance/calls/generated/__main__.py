"""python -m conformance.calls.generated: call everything in drawn ways.

Every call runs here and in PyTorch; what differs is grouped by how, and by what was called.
`--only 17` shows the 17th call of a seed and what comes of it; `--replay FILE` runs a kept one.
"""

from __future__ import annotations

import sys

from conformance.autograd.generated.__main__ import FOREIGN, run_language

from . import programs
from .words import CallWords

JUDGE = "conformance.calls.generated.judging"

__all__ = ["FOREIGN", "JUDGE"]

if __name__ == "__main__":
    sys.exit(run_language("conformance.calls.generated", __doc__, JUDGE, programs, CallWords))
