"""Programs that use autograd in every way there is: here and in PyTorch, they do the same.

Other programs in each run: the seed is printed, `python -m conformance.autograd.generated --seed
SEED` draws them again. FLAMBEAU_AUTOGRAD_SECONDS says for how long; FLAMBEAU_GENERATED_WORKERS in
how many processes. What was ever found is in `generated/found/`, and is run first.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conformance.drawn_tests import kept, new_ones

from .generated import checking, shrinking
from .generated.__main__ import FOREIGN, JUDGE

SECONDS = float(os.environ.get("FLAMBEAU_AUTOGRAD_SECONDS", "60"))
RARE = 300
"""Of so many programs one may differ: each draws some dozen of all operators there are, and odd
arguments of rare ones still do (all are printed). A fault of autograd shows in more."""


@pytest.mark.parametrize("path", kept(__file__), ids=lambda path: path.stem)
def test_what_was_found(path: Path) -> None:
    """Programs in which the libraries differed once."""
    found = checking.check(path.read_text("utf-8"))
    assert found.difference is None, found


@pytest.mark.skipif(not SECONDS, reason="FLAMBEAU_AUTOGRAD_SECONDS: not for how long")
def test_new_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """As many as there is time for."""
    total, seed = new_ones("programs of autograd", SECONDS, JUDGE, FOREIGN, capsys)
    assert total.counts["programs"] > 10 * total.counts["undetermined"]
    found = sum(total.unexplained.values())
    assert found <= 2 + total.counts["programs"] / RARE, f"seed {seed}"


# ---- the tester itself

LEAF = "x = make(1, (2, 3)).requires_grad_()\n"
CHANGES = {
    "values": ("y = x * 2\n", "y = x * 3\n"),
    "None or not": ("x.sum().backward()\n", "x.sum()\n"),
    "requires_grad": ("y = x * 2\n", "y = x.detach() * 2\n"),
    "memory": ("y = x[:1]\n", "y = x[:1].clone()\n"),
    "number of values": ("h = x.register_hook(told('h'))\nx.sum().backward()\n",
                         "h = x.register_hook(nothing)\nx.sum().backward()\n"),
    "raises RuntimeError": ("y = x.exp_()\n", "y = (x * 2).exp_()\n"),
    "does not raise RuntimeError": ("y = (x * 2).exp_()\n", "y = x.exp_()\n"),
    "version": ("y = x * 1\ny.mul_(1)\n", "y = x * 1\n0\n"),
    "stride": ("y = x.t()[::2]\n", "y = x.t()[::2].contiguous()\n"),
    "name": ("y = x * 1\ny[0].mul_(1)\n", "y = x * 1\ny.mul_(1)\n"),
    "dtype": ("y = x > 0\n", "y = (x > 0).double()\n"),
}  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
def test_differences_are_seen(kind: str) -> None:
    """Two programs that are not the same, as if they were one in two libraries."""
    import flambeau

    from .generated.comparing import difference
    from .generated.running import outcome

    mine, other = (LEAF + text for text in CHANGES[kind])
    found = difference(outcome(mine, flambeau), outcome(other, flambeau))
    assert found is not None
    assert found.kind.startswith(kind)


def test_programs_are_made_small() -> None:
    text = (
        LEAF + "y = x * 2\nz = (y + 1).exp().sin()\nwith torch.no_grad():\n    y.mul_(2)\ndel z\n"
    )
    small = shrinking.shrunk(text, lambda smaller: "sin" in smaller)
    assert small.count("\n") == 1
    assert "exp" not in small
