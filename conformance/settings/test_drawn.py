"""Programs that switch settings in several threads: here and in PyTorch, they do the same.

Other programs in each run: the seed is printed, `python -m conformance.settings --seed SEED` draws
them again. FLAMBEAU_SETTINGS_SECONDS says for how long. What was found and mended is in `found/`,
and is run first.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import flambeau
from conformance.autograd.generated import comparing
from conformance.drawn_tests import new_ones
from conformance.settings.__main__ import FOREIGN, JUDGE
from conformance.settings.children import LIBRARIES, check, in_a_child, run

SECONDS = float(os.environ.get("FLAMBEAU_SETTINGS_SECONDS", "10"))
RARE = 200
"""Of so many programs one may differ, for reasons that are documented and rarely drawn."""
FOUND = sorted(Path(__file__).with_name("found").glob("*.txt"))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_was_found(path: Path) -> None:
    """Programs in which the libraries differed once."""
    assert check(path.read_text("utf-8")).difference is None


@pytest.mark.skipif(not SECONDS, reason="FLAMBEAU_SETTINGS_SECONDS: not for how long")
def test_new_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """As many as there is time for."""
    total, seed = new_ones("programs of settings", SECONDS, JUDGE, FOREIGN, capsys)
    # Where a machine is so busy that processes do not get ready in time, nothing was compared.
    found = {name: n for name, n in total.groups.items() if not name.startswith("hang in")}
    assert sum(found.values()) <= 1 + total.counts["programs"] / RARE, f"seed {seed}: {found}"


# ---- the tester itself

CHANGES = {
    "other value": ("r = on(0, look)\n", "torch.set_grad_enabled(False)\nr = on(0, look)\n"),
    "values": ("r = torch.ones(2)\n", "r = torch.zeros(2)\n"),
    "words of an error": ("torch.set_num_threads(0)\n", "torch.set_num_threads(2.0)\n"),
    "does not raise RuntimeError": ("start()\n", "torch.set_num_threads(0)\n"),
    "warnings": ("start()\n", "torch.set_float32_matmul_precision('low')\n"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_differences_are_seen(kind: str) -> None:
    """Two programs that are not the same, as if they were one in two libraries."""
    outcomes = [in_a_child(run, text, "flambeau") for text in CHANGES[kind]]
    for outcome in outcomes:
        del outcome.lines[:-1]
        outcome.final = {}
    found = comparing.difference(*outcomes)
    assert found is not None
    assert found.kind.startswith(kind)


THREADS = """
start()
start()
enter(1, lambda: torch.no_grad())
r1 = together(lambda: torch.is_grad_enabled(), lambda: torch.is_grad_enabled())
torch.set_default_dtype(torch.float64)
r2 = together(lambda: str(torch.get_default_dtype()), lambda: str(torch.ones(1).dtype))
leave(1)
r3 = on(1, lambda: torch.is_grad_enabled())
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_threads_have_modes_of_their_own(library: str) -> None:
    """What programs rely on: statements run in the thread that they name."""
    values: dict[str, Any] = {}
    for line in in_a_child(run, THREADS, library).lines:
        assert not line.error, line
        values |= line.values
    assert values["r1"] == [False, True]
    assert values["r2"] == ["torch.float64", "torch.float64"]
    assert values["r3"] is True


ONE_FAILS = """
start()
start()
r1 = together(lambda: torch.set_num_threads(0), lambda: 1)
r2 = on(2, lambda: 2)
"""


def test_no_result_is_left_when_a_thread_fails() -> None:
    """The next result of a thread is that of the next action, whatever another thread raised."""
    lines = in_a_child(run, ONE_FAILS, "flambeau").lines
    assert [bool(line.error) for line in lines] == [False, False, True, False]
    assert lines[-1].values["r2"] == 2


def test_nothing_stays() -> None:
    """Programs run in processes of their own."""
    in_a_child(run, "torch.set_default_dtype(torch.float64)\n", "flambeau")
    assert flambeau.get_default_dtype() is flambeau.float32
