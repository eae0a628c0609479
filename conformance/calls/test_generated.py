"""Calls of everything PyTorch documents: here and there, they do the same.

Other calls in each run: the seed is printed, `python -m conformance.calls.generated --seed SEED`
draws them again. FLAMBEAU_CALLS_SECONDS says for how long; FLAMBEAU_GENERATED_WORKERS in how many
processes. What was found and mended is in `generated/found/`, and is run first.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import flambeau
from conformance.autograd.generated import checking, comparing, running
from conformance.drawn_tests import kept, new_ones

from .generated import sources
from .generated.__main__ import FOREIGN, JUDGE
from .generated.words import CallWords

SECONDS = float(os.environ.get("FLAMBEAU_CALLS_SECONDS", "40"))
RARE = 100
"""Of so many calls one may differ (all are printed): one in 32 does, nearly always in the words or
the class of an error, where a call has several mistakes and PyTorch looks for another one first."""
RARE_RESULTS = 300
"""Of so many calls one may have another result: one in 250 does."""
RESULTS = ("values", "dtype", "shape", "requires_grad", "memory", "version")


@pytest.mark.parametrize("path", kept(__file__), ids=lambda path: path.stem)
def test_what_was_found(path: Path) -> None:
    """Calls in which the libraries differed once."""
    for text in path.read_text("utf-8").split("\n\n"):
        found = checking.check(text, language=CallWords)
        assert found.difference is None, f"{text}\n{found}"


@pytest.mark.skipif(not SECONDS, reason="FLAMBEAU_CALLS_SECONDS: not for how long")
def test_new_calls(capsys: pytest.CaptureFixture[str]) -> None:
    """As many as there is time for."""
    total, seed = new_ones("calls", SECONDS, JUDGE, FOREIGN, capsys)
    calls = total.counts["programs"]
    assert calls > 20 * total.counts["undetermined"]
    assert sum(total.unexplained.values()) <= 5 + calls / RARE, f"seed {seed}"
    results = [n for name, n in total.unexplained.items() if name.partition(" |")[0] in RESULTS]
    assert sum(results) <= 3 + calls / RARE_RESULTS, f"seed {seed}"


# ---- the tester itself


def test_what_is_called() -> None:
    """Signatures are read from the installed PyTorch; hardly anything is left without a kind."""
    found = sources.targets()
    parameters = [p for target in found for signature in target.signatures for p in signature]
    unknown = [p for p in parameters if not p.kind]
    assert len(found) > 1200
    assert len(unknown) < len(parameters) / 8


X = "x1 = make(1, (2, 3))\n"
CHANGES = {
    "values": ("r = torch.sin(x1)\n", "r = torch.cos(x1)\n"),
    "dtype": ("r = x1.to(torch.float32)\n", "r = x1.to(torch.float16)\n"),
    "shape": ("r = x1.sum(0)\n", "r = x1.sum(0, True)\n"),
    "memory": ("r = x1[:1]\n", "r = x1[:1].clone()\n"),
    "stride": ("r = x1.t()\n", "r = x1.t().contiguous()\n"),
    "raises TypeError": ("r = torch.sin(1)\n", "r = 1\n"),
    "words of an error": ("r = torch.mm(x1, x1)\n", "r = torch.mm(x1, x1[0])\n"),
    "warnings": ("r = torch.set_printoptions() or x1.T.T[0].T\n", "r = x1.T.T[0]\n"),
}  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
def test_differences_are_seen(kind: str) -> None:
    """Two calls that are not the same, as if they were one in two libraries."""
    outcomes = [running.outcome(X + text, flambeau, language=CallWords) for text in CHANGES[kind]]
    found = comparing.difference(*outcomes)
    assert found is not None
    assert found.kind.startswith(kind)


def test_misfits_have_no_words_of_their_own() -> None:
    """What Python says where an argument is missing, too many or unknown, it says in its words."""
    outcomes = [
        running.outcome(X + text, flambeau, language=CallWords)
        for text in ("r = torch.sin(x1, x1)\n", "r = torch.sin(x1, foo=1)\n")
    ]
    assert comparing.difference(*outcomes) is None
