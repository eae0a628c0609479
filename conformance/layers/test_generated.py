"""Calls of layers and operators with drawn hyper-parameters: here and in PyTorch, they do the same.

Other calls in each run: the seed is printed, `python -m conformance.layers.generated --seed SEED`
draws them again. FLAMBEAU_LAYERS_SECONDS says for how long; FLAMBEAU_GENERATED_WORKERS in how many
processes. What was ever found is in `generated/found/`, and is run first.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import flambeau
from conformance.autograd.generated import running
from conformance.drawn_tests import kept, new_ones

from .generated import checking, comparing, programs
from .generated.__main__ import FOREIGN, JUDGE
from .generated.words import LayerWords

SECONDS = float(os.environ.get("FLAMBEAU_LAYERS_SECONDS", "40"))
RARE = 500
"""Of so many calls one may differ (all are printed): one in 400 does, mostly by strides where sizes
of 1 leave the order open, and by words of errors."""


@pytest.mark.parametrize("path", kept(__file__), ids=lambda path: path.stem)
def test_what_was_found(path: Path) -> None:
    """Calls in which the libraries differed once."""
    for text in path.read_text("utf-8").split("\n\n"):
        found = checking.check(text)
        assert found.difference is None, f"{text}\n{found}"


@pytest.mark.skipif(not SECONDS, reason="FLAMBEAU_LAYERS_SECONDS: not for how long")
def test_new_calls(capsys: pytest.CaptureFixture[str]) -> None:
    """As many as there is time for."""
    total, seed = new_ones("calls of layers", SECONDS, JUDGE, FOREIGN, capsys)
    assert total.counts["programs"] > 10 * total.counts["undetermined"]
    found = sum(total.unexplained.values())
    assert found <= 2 + total.counts["programs"] / RARE, f"seed {seed}"


# ---- the tester itself

X = "x = make(1, (2, 3), 'float32').requires_grad_()\n"
CHANGES = {
    "values": ("y = x * 2\n", "y = x * 2.001\n"),
    "values of a gradient": ("g = slopes([x * 2], [x])\n", "g = slopes([x * 2], [x], 1)\n"),
    "stride": ("y = x.t().contiguous()\n", "y = x.t().clone()\n"),
    "requires_grad": ("y = x * 2\n", "y = x.detach() * 2\n"),
    "dtype": ("y = x * 2\n", "y = (x * 2).double()\n"),
    "other value": ("g = slopes([x], [x])\n", "g = slopes([x.detach()], [x])\n"),
    "raises IndexError": ("x.sum(2)\n", "x.sum(1)\n"),
    "words of an error": ("x.sum(2)\n", "x.sum(3)\n"),
    "warnings": ("torch.var(x[:, :1], 1)\n", "torch.var(x, 1)\n"),
}  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
def test_differences_are_seen(kind: str) -> None:
    """Two programs that are not the same, as if they were one in two libraries."""
    texts = [X + text for text in CHANGES[kind]]
    outcomes = [running.outcome(text, flambeau, language=LayerWords) for text in texts]
    found = comparing.difference(*outcomes)
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize("family", programs.FAMILIES)
def test_families(family: str) -> None:
    """Most programs of each run in PyTorch, and take gradients."""
    texts = [programs.case(f"{family}:{number}") for number in range(20)]
    assert len(set(texts)) > 15
    assert sum("slopes(" in text for text in texts) > 8
