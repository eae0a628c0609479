"""An optimisation never fails a program: its faults are counted, and the plain form runs.

There are two kinds of no. "This does not fit" (`NotFusible`, `NotBatchable`, `NoForm`) is an
answer, and costs nothing but time. Any other error in tracing, lowering, compiling or first running
an optimised form is either the program's own, which its plain form then raises as well, or a fault
of ours: the plain form runs through. Faults are kept here; `flambeau run --advise` warns of each
place once, tests let them through (`settings.raise_faults`).
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

from flambeau.jit.optimise import settings

counted: Counter[str] = Counter()
"""How often each part of the optimiser has failed and left the work to the plain form."""
last: dict[str, BaseException] = {}
"""The last error of each."""


class OptimiserWarning(UserWarning):
    """An optimised form failed; the plain one has computed the results."""


def note(part: str, error: Exception) -> None:
    """Count a fault of a part of the optimiser, such as "fusion". Call it once the plain form has
    shown that the error is not the program's own."""
    counted[part] += 1
    last[part] = error
    if settings.current.raise_faults:
        raise error
    if settings.advised and counted[part] == 1:
        text = f"{part}: {type(error).__name__}: {error}; the plain operators ran in its place"
        warnings.warn(text, OptimiserWarning, stacklevel=3)


def plainly(part: str, error: Exception, plain: Callable[..., Any], *values: Any) -> Any:
    """The results of the plain form after an error in an optimised one. If it raises, too, the
    error was the program's; otherwise it is noted as a fault."""
    results = plain(*values)
    note(part, error)
    return results
