"""python -m conformance.settings: switch settings in the middle of drawn programs.

Every program runs here and in PyTorch, in processes of their own. What differs is made small and
grouped. `--only 17` shows the 17th program of a seed and what comes of it; `--replay FILE` runs
a kept program.
"""

from __future__ import annotations

import sys

from conformance.autograd.generated.__main__ import FOREIGN, run_language

from . import drawing
from .children import check
from .words import SettingsWords

JUDGE = "conformance.settings.judging"

__all__ = ["FOREIGN", "JUDGE"]

if __name__ == "__main__":
    sys.exit(run_language("conformance.settings", __doc__, JUDGE, drawing, SettingsWords, check))
