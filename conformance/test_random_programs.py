"""Random programs give the same results under flambeau as under torch.

`FLAMBEAU_PROGRAMS=10000` sets how many are run (1,000 by default).
"""

from __future__ import annotations

import os
import random
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import flambeau
from conformance.programs import Outcome, Step, Writer, run

torch = pytest.importorskip("torch")
TOLERANCE = 3e-3  # float16 arithmetic: one rounding of 2**-11 at each step
COUNT = int(os.environ.get("FLAMBEAU_PROGRAMS", "1000"))


def difference(program: list[Step]) -> str | None:
    """The first difference between the two runs, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = run(program, torch), run(program, flambeau)
    return compare(theirs, ours)


def compare(theirs: Outcome, ours: Outcome) -> str | None:
    for position, (want, got) in enumerate(zip(theirs.steps, ours.steps, strict=True)):
        if "Autograd not support dtype" in str(want):
            return None  # torch cannot look at integers that took numbers which have a gradient
        found = _differs(want, got)
        if found:
            return f"step {position}: {found}"
    if any("report a bug" in str(g) for g in theirs.grads):
        return None  # torch fails an assertion of its own
    if len(theirs.grads) != len(ours.grads):
        return f"gradients: {theirs.grads} against {ours.grads}"
    for position, (want, got) in enumerate(zip(theirs.grads, ours.grads, strict=True)):
        found = _differs(want, got)
        if found:
            return f"gradient of leaf {position}: {found}"
    return None


def _differs(want: Any, got: Any) -> str | None:
    if isinstance(want, list) and isinstance(got, list):
        return next(filter(None, map(_differs, want, got)), None)
    if isinstance(want, tuple) and isinstance(got, tuple):
        return _differs(dict(zip("sv", want, strict=True)), dict(zip("sv", got, strict=True)))
    if not isinstance(want, dict) or not isinstance(got, dict):
        return None if want is None and got is None else f"{want} against {got}"
    if ("error" in want) != ("error" in got):
        return f"{want} against {got}"
    if "error" in want and "has been modified inplace" in want["text"]:
        return None  # any error will do: torch looks at stale views before it looks at arguments
    if "error" in want:
        return None if want["error"] == got["error"] else f"{want} against {got}"
    return _differing_field(want, got)


def _plain(strides: tuple[int, ...], values: np.ndarray) -> list[int]:
    """Strides without those of dims of size 1, which tell nothing: which operand comes first, or
    which of two buffers a sum of gradients is kept in, decides those."""
    return [s for s, n in zip(strides, values.shape, strict=True) if n != 1]


def _same_strides(want: dict[str, Any], value: tuple[int, ...], mine: tuple[int, ...]) -> bool:
    numbers = want.get("values", want.get("v"))
    return len(value) == len(mine) and _plain(value, numbers) == _plain(mine, numbers)


def _differing_field(want: dict[str, Any], got: dict[str, Any]) -> str | None:
    empty = 0 in np.shape(want.get("values", want.get("v")))
    for key, value in want.items():
        mine = got[key]
        if isinstance(value, np.ndarray):
            if not np.allclose(value, mine, TOLERANCE, TOLERANCE / 10, equal_nan=True):
                return f"{key}: {value} against {mine}"
        elif key in ("s", "stride") and _same_strides(want, value, mine):
            continue
        elif value != mine and not (empty and key in ("offset", "stride", "s")):
            # NumPy starts an empty slice where its source starts, with a step of 1
            return f"{key}: {value} against {mine}"
    return None


@settings(max_examples=COUNT, deadline=None, database=None, phases=[Phase.generate, Phase.shrink],
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(st.data())
def test_random_programs(data: Any) -> None:
    def choose(below: int) -> int:
        return data.draw(st.integers(0, below - 1))

    length = 2 + choose(10)
    program = Writer(choose, length).program()
    found = difference(program)
    assert found is None, f"{found}\n" + "\n".join(map(str, program))


if __name__ == "__main__":  # many programs, fast, without shrinking
    import sys

    bad: dict[str, int] = {}
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for number in range(total):
        generator = random.Random(number)
        steps = Writer(generator.randrange, 2 + generator.randrange(10)).program()
        result = difference(steps)
        if result is not None:
            bad[str(number)] = 1
            print(number, " ".join(result.split())[:400])
    print(f"{total - len(bad)} passed, {len(bad)} failed")
