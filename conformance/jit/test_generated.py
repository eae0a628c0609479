"""Programs drawn from the whole language: optimised or not, they compute the same.

Other programs in each run: the seed is printed, `python -m conformance.jit.generated --seed SEED`
draws them again. FLAMBEAU_GENERATED_SECONDS says for how long; FLAMBEAU_GENERATED_WORKERS in how
many processes. What was ever found is in `generated/found/`, and is run first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch as reference

from flambeau.jit import optimise
from flambeau.jit.ir.graph import Graph
from tests.random_seeds import token

from .generated import checking, comparing, keeping, programs, shrinking
from .generated.__main__ import report
from .generated.cases import After, Call, Case, TensorArgument, Write
from .generated.workers import Plan, run

SECONDS = float(os.environ.get("FLAMBEAU_GENERATED_SECONDS", "60"))
WORKERS = int(os.environ.get("FLAMBEAU_GENERATED_WORKERS", "1"))
SAMPLE = int(os.environ.get("FLAMBEAU_GENERATED_ACROSS", "0"))
"""Programs that PyTorch runs, too: by hand, for eager operators differ from it here and there."""


RARE = 500
"""Of so many programs one may differ: an operator whose error nobody waits for may be left out, and
what follows it then takes place."""
OPEN: dict[str, str] = {}
"""Kept programs that still differ, and why."""


@pytest.mark.parametrize("path", keeping.kept(), ids=lambda path: path.stem)
def test_what_was_found(path: Path, request: pytest.FixtureRequest) -> None:
    """Programs on which forms differed once."""
    if path.stem in OPEN:
        request.applymarker(pytest.mark.xfail(reason=OPEN[path.stem], strict=True))
    found = checking.check(keeping.read(path.read_text("utf-8")))
    assert found.compiled
    assert found.finding is None, found.finding


@pytest.mark.skipif(not SECONDS, reason="FLAMBEAU_GENERATED_SECONDS: not for how long")
def test_new_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """As many as there is time for."""
    seed = token("programs")
    with capsys.disabled():
        print(f"\ngenerated programs: seed {seed}")
        total = run(Plan(seed, minutes=SECONDS / 60, workers=WORKERS))
        print(total.line())
    report(total)
    assert total.counts["programs"] > total.counts["not compiled"] * 10
    assert sum(total.groups.values()) <= 1 + total.counts["programs"] / RARE, f"seed {seed}"


@pytest.mark.skipif(not SAMPLE, reason="FLAMBEAU_GENERATED_ACROSS does not say how many")
def test_new_programs_in_pytorch() -> None:
    """A few, against PyTorch's own scripts."""
    seed = token("across")
    print(f"seed {seed}")
    for number in range(SAMPLE):
        case = programs.case(f"{seed}/{number}")
        found = checking.check_across(case, reference)
        assert found.finding is None, f"{found.finding}\n{keeping.written(case)}"


# ---- the tester itself


CASE = Case(
    """
def f(x: Tensor, y: Tensor):
    z = torch.tanh(x)
    for i in range(x.size(0)):
        z = z * 2.0 - y
    return z, torch.relu(y)
""",
    tuple(
        Call((TensorArgument((2, 3), seed=s, learns="leaf"), TensorArgument((2, 3), seed=9)),
             after=After((Write(2),), "grad"))
        for s in range(3)
    ),
)  # fmt: skip


def _wrong_operator(graph: Graph) -> None:
    """An optimisation that is none."""
    for node in list(graph.walk()):
        if node.kind == "aten::relu":
            node.kind, node.schema = "aten::neg", None


@pytest.fixture
def wrong_optimiser(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The optimiser makes negative numbers of what should be their positive parts."""
    monkeypatch.setattr(optimise, "optimise", _wrong_operator)
    yield


def test_agreement_is_seen() -> None:
    """The forms of a plain program agree, and none of its calls raises."""
    found = checking.check(CASE)
    assert found == checking.Checked()


@pytest.mark.usefixtures("wrong_optimiser")
def test_a_fault_is_seen_and_made_small() -> None:
    """A wrong operator is found, and only what it takes to show it is left."""
    found = checking.check(CASE).finding
    assert found is not None
    assert found.difference.kind == "values of result"
    small = shrinking.shrunk(CASE, lambda c: checking.check(c).finding is not None)
    assert small.text == "def f(y: Tensor):\n    return torch.relu(y)\n"
    assert small.calls == (Call((TensorArgument((1, 1), seed=0),)),)


def test_cases_are_written_and_read() -> None:
    """Files say all that there is to say."""
    assert keeping.read(keeping.written(CASE)) == replace(CASE)
    odd = (0.5, float("inf"), -0.0, True, None, 2**70, 1j, [TensorArgument(()), 2], "a'\"\\")
    case = Case("def f(): pass\n", (Call(odd, "no_grad"),), False, "1/2")
    again = keeping.read(keeping.written(case, "two\nlines"))
    assert repr(again) == repr(case)


def test_programs_are_drawn_again_from_their_seed() -> None:
    """The seed is all that it takes, and other seeds draw other programs."""
    drawn = [programs.case(f"again/{number}") for number in range(5)]
    assert drawn == [programs.case(f"again/{number}") for number in range(5)]
    assert len({case.text for case in drawn}) == 5


def test_what_is_compared() -> None:
    """Signs of zeros, places of NaN, the last digits: which of them make a difference."""
    import numpy as np

    one = np.array([1.0, 0.0, np.nan])
    assert comparing.compare_arrays(one, one) == 0
    assert comparing.compare_arrays(one, np.array([1.0, -0.0, np.nan])) == np.inf
    assert comparing.compare_arrays(one, np.array([1.0, -0.0, np.nan]), signs=False) == 0
    assert comparing.compare_arrays(one, np.array([1.0, 0.0, 0.0])) == np.inf
    assert comparing.compare_arrays(one, np.array([1.0, 0.0, 0.0]), signs=False) == np.inf
    assert comparing.compare_arrays(one, np.array([1.0, 0.0, np.inf])) == np.inf
    assert comparing.compare_arrays(one, np.array([1.0, 0.0, np.inf]), signs=False) == 0
    assert comparing.compare_arrays(one, np.array([1.5, 0.0, np.nan])) == pytest.approx(1 / 3)
