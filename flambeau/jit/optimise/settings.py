"""Which optimisations are on: each can be switched off, to compare or to find an error.

    with optimise.settings.using(fusion=False):
        ...

The switches count when a function is compiled; `FLAMBEAU_JIT=0` in the environment turns all off.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Settings:
    """The switches."""

    clean_up: bool = True
    """Inlining, constants folded, equal computations shared, unused ones left out."""
    loop_batching: bool = True
    """Loops without dependence between their rounds as one batched computation."""
    hoisting: bool = True
    """Products of a loop that do not depend on earlier rounds as one product before it."""
    scans: bool = True
    """Loops with a recurrent cell as one kernel for all rounds."""
    fusion: bool = True
    """Pointwise operators and normalisation in one kernel."""
    images: bool = True
    """Convolution, normalisation, residual and activation together."""
    subscripts: bool = True
    """Chains of `select` and `slice` as one view."""
    raise_faults: bool = False
    """Errors of the optimiser itself are raised, not answered by the plain form: for tests. Asked
    when they happen."""


ALL_OFF = Settings(False, False, False, False, False, False, False)
advised = False
"""Whether faults of the optimiser are told as warnings (`flambeau run --advise`)."""
current = ALL_OFF if os.environ.get("FLAMBEAU_JIT") == "0" else Settings()


@contextmanager
def using(**switches: bool) -> Iterator[Settings]:
    """Other settings for a while, for functions that are compiled in it."""
    global current  # noqa: PLW0603
    saved = current
    current = replace(saved, **switches)
    try:
        yield current
    finally:
        current = saved
