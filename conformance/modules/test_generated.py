"""Programs of modules, optimizers and mixed precision: here and in PyTorch, they do the same.

Other programs in each run: the seed is printed, `python -m conformance.modules.generated --seed
SEED` draws them again. FLAMBEAU_MODULES_SECONDS says for how long; FLAMBEAU_GENERATED_WORKERS in
how many processes. What was ever found is in `generated/found/`, and is run first.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import flambeau
from conformance.autograd.generated import checking, comparing, running
from conformance.drawn_tests import kept, new_ones

from .generated.__main__ import FOREIGN, JUDGE
from .generated.words import ModuleWords

SECONDS = float(os.environ.get("FLAMBEAU_MODULES_SECONDS", "60"))
RARE = 60
"""Of so many programs one may differ (all are printed): one in 170 does, by words of errors for
what has no sense, mostly of layers that have no shape yet."""


@pytest.mark.parametrize("path", kept(__file__), ids=lambda path: path.stem)
def test_what_was_found(path: Path) -> None:
    """Programs in which the libraries differed once."""
    found = checking.check(path.read_text("utf-8"), language=ModuleWords)
    assert found.difference is None, found


@pytest.mark.skipif(not SECONDS, reason="FLAMBEAU_MODULES_SECONDS: not for how long")
def test_new_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """As many as there is time for."""
    total, seed = new_ones("programs of modules", SECONDS, JUDGE, FOREIGN, capsys)
    assert total.counts["programs"]
    assert total.counts["undetermined"] <= 2 + total.counts["programs"] / 10
    found = sum(total.unexplained.values())
    assert found <= 2 + total.counts["programs"] / RARE, f"seed {seed}"


# ---- the tester itself

MODULE = "m1 = nn.Linear(3, 3)\nx2 = batch(1)\n"
OPTIMIZER = MODULE + "o3 = optim.SGD(m1.parameters(), lr=0.1, momentum=0.5)\n"
TRAINED = OPTIMIZER + "ends_in(m1(x2)).backward()\n"
CHANGES = {
    "values": (MODULE + "m1.weight.data.mul_(1)\n", MODULE + "m1.weight.data.mul_(2)\n"),
    "names": (MODULE + "m1.b = None\n", MODULE + "m1.register_parameter('b', None)\n"),
    "None or not": (TRAINED + "0\n", TRAINED + "o3.zero_grad()\n"),
    "other value": (MODULE + "m1.train()\n", MODULE + "m1.eval()\n"),
    "requires_grad": (MODULE + "0\n", MODULE + "m1.requires_grad_(False)\n"),
    "raises AttributeError": (MODULE + "m1.gone\n", MODULE + "m1.bias\n"),
    "words of an error": (MODULE + "m1.gone\n", MODULE + "m1.went\n"),
    "warnings": ("utils.weight_norm(nn.Linear(1, 1))\n", "0\n"),
    "number of values": (OPTIMIZER + "o3.param_groups.append({'params': []})\n", OPTIMIZER + "0\n"),
    "dtype": (MODULE + "m1.double()\n", MODULE + "m1.float()\n"),
}  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
def test_differences_are_seen(kind: str) -> None:
    """Two programs that are not the same, as if they were one in two libraries."""
    outcomes = [running.outcome(text, flambeau, language=ModuleWords) for text in CHANGES[kind]]
    found = comparing.difference(*outcomes)
    assert found is not None
    assert found.kind.startswith(kind)


def test_global_hooks_are_gone_afterwards() -> None:
    text = MODULE + "h3 = everywhere('forward', told('h3'))\nm1(x2)\n"
    found = running.outcome(text, flambeau, language=ModuleWords)
    assert found.lines[-1].notes
    text = MODULE + "h3 = 0\nm1(x2)\n"
    assert not running.outcome(text, flambeau, language=ModuleWords).lines[-1].notes
