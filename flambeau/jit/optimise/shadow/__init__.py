"""Shadow mode: every optimised call is compared with the plain program.

    FLAMBEAU_CHECK_OPTIMISED=1 flambeau run train.py

or, in a program, `with flambeau.debug.check_optimised():`.

Before a scripted function runs, it runs twice on copies of its arguments: as it is optimised, and
as it stands. Results and arguments are then compared in values, types, shapes, strides, gradients,
aliasing, versions, and random state and output with them. A difference raises
`OptimisedDifference`, which says what differs.

| file | what it does |
|---|---|
| `copies.py` | copies arguments, with what they share and where their gradients go |
| `comparison.py` | what two runs have come to, and the first difference between them |
| `checked.py` | the function that runs in the place of an optimised one |
"""

from __future__ import annotations

from flambeau.jit.errors import OptimisedDifference
from flambeau.jit.optimise.shadow.checked import Checked, report

__all__ = ["Checked", "OptimisedDifference", "report"]
