"""python -m conformance.modules.generated: try modules and optimizers with drawn programs.

Every program runs here and in PyTorch. What differs is made small and grouped. `--only 17` shows
the 17th program of a seed and what comes of it; `--replay FILE` runs a kept program.
"""

from __future__ import annotations

import sys

from conformance.autograd.generated.__main__ import FOREIGN, run_language

from . import programs
from .words import ModuleWords

JUDGE = "conformance.modules.generated.judging"

__all__ = ["FOREIGN", "JUDGE"]

if __name__ == "__main__":
    sys.exit(run_language("conformance.modules.generated", __doc__, JUDGE, programs, ModuleWords))
