"""A function that is optimised, and compared with the plain program at every call."""

from __future__ import annotations

import contextlib
import io
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._ops.random.draws import get_rng_state, set_rng_state
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.jit import state
from flambeau.jit.errors import OptimisedDifference
from flambeau.jit.ir.function import Function
from flambeau.jit.optimise.shadow.comparison import (
    Outcome,
    difference,
    of_gradients,
    of_values,
)
from flambeau.jit.optimise.shadow.copies import Copies, NotCopied
from flambeau.jit.optimise.sharing import tensors_in

counted: Counter[str] = Counter()
"""Calls: "compared", or why they could not be."""
tolerance = 1.0
"""Times what `comparison.TOLERANCE` allows: for programs that make small differences large."""
GRADIENTS = 10.0
"""Gradients may differ by so many times more than results: they are longer sums."""


class Inside(threading.local):
    """Whether a comparison is running: what is called within it is not compared again."""

    active = False


inside = Inside()


class Checked:
    """In the place of an optimised function."""

    def __init__(self, function: Function, optimised: Callable[..., Any]) -> None:
        self.function = function
        self.optimised = optimised

    def __call__(self, *values: Any) -> Any:
        """The results of the optimised form, once both forms have agreed on copies."""
        if inside.active:
            return self.optimised(*values)
        inside.active = True
        try:
            wanted = self._compared(values)
            return self._run(values, wanted)
        finally:
            inside.active = False

    def _run(self, values: Sequence[Any], wanted: Outcome | None) -> Any:
        """The call itself: by now it may be the first that takes kernels."""
        try:
            results = self.optimised(*values)
        except Exception as error:
            if wanted is not None and wanted.error is None:
                self._agree(f"error: {type(error).__name__}: {error} instead of none")
            raise
        if wanted is not None:
            self._agree(of_values("result", results, wanted.results, tolerance))
        return results

    def _compared(self, values: Sequence[Any]) -> Outcome | None:
        """What the plain form has come to; None where copies tell nothing."""
        before = get_rng_state()
        try:
            copies = [Copies(values), Copies(values)]
        except NotCopied as reason:
            counted[f"not compared: {reason}"] += 1
            return None
        try:
            found = self._outcome(self.optimised, copies[0], True)
            set_rng_state(before)
            wanted = self._outcome(self._plain(), copies[1], False)
        finally:
            set_rng_state(before)
        self._agree(difference(found, wanted, tolerance))
        if wanted.error is None:
            self._agree(_of_gradients(found, wanted))
        counted["compared"] += 1
        return wanted

    def _plain(self) -> Callable[..., Any]:
        from flambeau.jit.run.program import callable_of

        with optimising(False):
            return callable_of(self.function)

    def _outcome(self, run: Callable[..., Any], copies: Copies, optimise: bool) -> Outcome:
        """Run one of the forms on copies."""
        results, error = None, None
        output = io.StringIO()
        recording = modes.grad.enabled
        with optimising(optimise), contextlib.redirect_stdout(output):
            try:
                results = run(*copies.values)
            except Exception as raised:
                error = raised
        drawn, left = get_rng_state()._data.tobytes(), modes.grad.enabled
        modes.grad.enabled = recording
        return Outcome(results, error, copies.tensors, copies.leaves, copies.values,
                       output.getvalue(), drawn, left)  # fmt: skip

    def _agree(self, told: str | None) -> None:
        if told:
            raise OptimisedDifference(
                f"{self.function.qualified_name}: the optimised form differs from the program: "
                f"{told}. FLAMBEAU_JIT=0 runs programs as they stand; please report this one."
            )

    def __repr__(self) -> str:
        return f"<checked {self.function.qualified_name}>"


@contextlib.contextmanager
def optimising(how: Any) -> Any:
    """Whether functions that are first called within it are optimised."""
    before, state.optimize = state.optimize, how
    try:
        yield
    finally:
        state.optimize = before


def _of_gradients(found: Outcome, wanted: Outcome) -> str | None:
    """The first difference between gradients: of all results, then of one in three."""
    results = [_learning(outcome.results) for outcome in (found, wanted)]
    if not results[0] or not found.leaves or not modes.grad.enabled:
        return None
    rng = np.random.default_rng(len(results[0]))
    weights = [_drawn(result, rng) for result in results[1]]
    chosen = [k for k in range(len(weights)) if k % 3 == 0]
    for picked in (chosen, range(len(weights))):
        pairs = zip(results, (found.leaves, wanted.leaves), strict=True)
        mine, theirs = [_gradients(tensors, weights, leaves, picked) for tensors, leaves in pairs]
        told = of_gradients(mine, theirs, tolerance * GRADIENTS)
        if told:
            return told
    return None


def _learning(results: Any) -> list[Tensor]:
    return [t for t in tensors_in(results) if t.requires_grad and t._node is not None]


def _drawn(result: Tensor, rng: np.random.Generator) -> Tensor:
    numbers = rng.standard_normal(result._data.shape)
    return wrap(np.asarray(numbers).astype(result._data.dtype))


def _gradients(results: Sequence[Tensor], weights: Sequence[Tensor], leaves: Sequence[Tensor],
               picked: Sequence[int]) -> Any:  # fmt: skip
    """The gradients of the leaves, or the kind of error."""
    from flambeau.autograd import grad

    try:
        return list(grad([results[k] for k in picked], list(leaves), [weights[k] for k in picked],
                         retain_graph=True, allow_unused=True))  # fmt: skip
    except Exception as error:
        return type(error).__name__


def report() -> str:
    """How many calls were compared, and how many could not be."""
    lines = [f"{count:7} {words}" for words, count in counted.most_common()]
    return "\n".join(["calls of scripted functions:", *lines])
