"""Scripted functions compared, call by call, with the programs that they were made of."""

from __future__ import annotations

from contextlib import ContextDecorator


class check_optimised(ContextDecorator):
    """Compare every call of a scripted function with the plain program.

        with flambeau.debug.check_optimised() as counted:
            model(x)
        print(counted)  # Counter({'compared': 1})

    Every call runs on copies of its arguments first, once as it is optimised and once operator by
    operator. Results, arguments, gradients, what shares memory with what, random state and output
    have to be the same; floats may differ as the order of sums lets them. Takes some five times as
    long. `FLAMBEAU_CHECK_OPTIMISED=1` does the same for a whole process.

    tolerance: factor of what floats may differ by, for programs that make small differences large.

    Raises:
        flambeau.jit.errors.OptimisedDifference: a RuntimeError, at the call that differs, in words.
    """

    def __init__(self, *, tolerance: float = 1.0) -> None:
        self.tolerance = tolerance

    def __enter__(self) -> dict[str, int]:
        from flambeau.jit import state
        from flambeau.jit.optimise.shadow import checked

        self.before = state.optimize, checked.tolerance
        state.optimize, checked.tolerance = state.CHECKED, self.tolerance
        checked.counted.clear()
        return checked.counted

    def __exit__(self, *error: object) -> None:
        from flambeau.jit import state
        from flambeau.jit.optimise.shadow import checked

        state.optimize, checked.tolerance = self.before
