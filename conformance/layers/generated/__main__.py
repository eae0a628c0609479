"""python -m conformance.layers.generated: try layers and operators with drawn hyper-parameters.

Every program runs here and in PyTorch. What differs is made small and grouped. `--only 17` shows
the 17th program of a seed and what comes of it; `--replay FILE` runs a kept program; `--seed
convolution,pooling:7` draws only of these families.
"""

from __future__ import annotations

import sys

from conformance.autograd.generated.__main__ import FOREIGN, run_language

from . import checking, programs
from .words import LayerWords

JUDGE = "conformance.layers.generated.judging"

__all__ = ["FOREIGN", "JUDGE"]

if __name__ == "__main__":
    sys.exit(
        run_language(
            "conformance.layers.generated", __doc__, JUDGE, programs, LayerWords, checking.check
        )  # fmt: skip
    )
