"""FLAMBEAU_CPU: which features kernels are made for, and what is said where they are missing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from flambeau._runtime import choice, processor
from flambeau._runtime.processor import LEVELS, Level, made_for, within

WIDE = frozenset({"sse2", "avx2", "avx512f"})
THREE = {
    "baseline": Level("old", frozenset({"sse2"})),
    "avx2": Level("newer", frozenset({"sse2", "avx2"})),
    "avx512": Level("newest", WIDE, "-prefer-256-bit"),
}


@pytest.fixture(autouse=True)
def three_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "LEVELS", THREE)


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own, with these variables set."""
    unset = {"FLAMBEAU_CPU", "FLAMBEAU_ENGINE"}
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    return subprocess.run(
        [sys.executable, "-c", code], check=False, env={**inherited, **environment},
        capture_output=True, text=True,
    )  # fmt: skip


def test_the_processor_itself_by_default() -> None:
    assert made_for("native", "zen", "+sse2,-avx2", frozenset({"sse2"})) == (
        "zen", "+sse2,-avx2", frozenset({"sse2"}),
    )  # fmt: skip


def test_a_level_is_the_same_on_every_processor() -> None:
    found = {made_for("avx2", host, "+more", WIDE | {"more"}) for host in ("zen", "lake")}
    assert found == {("newer", "+avx2,+sse2", frozenset({"sse2", "avx2"}))}
    assert made_for("avx512", "zen", "", WIDE)[1] == "+avx2,+avx512f,+sse2,-prefer-256-bit"


def test_a_level_above_the_processor_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'avx512', but this processor \(lake\) has no avx512f; "
                                         r"it can be native, baseline, avx2$"):  # fmt: skip
        made_for("avx512", "lake", "", frozenset({"sse2", "avx2"}))
    assert within(frozenset({"sse2"})) == ["baseline"]
    assert within(frozenset()) == []


def test_an_unknown_word_is_refused_from_the_start() -> None:
    result = python("import flambeau", FLAMBEAU_CPU="avx3")
    wanted = f"FLAMBEAU_CPU is 'avx3'; it can be {', '.join(processor.CHOICES)}"
    assert result.returncode == 1 and wanted in result.stderr


USED = """
import numpy as np
from flambeau._runtime import engine, features
print(features.made_for()[0], features.vector_bits(), features.has("fma"), engine.fingerprint())
import flambeau as torch
x = (torch.arange(70_000) % 80).reshape(700, 100) / 8
print((x.exp().log() - x).abs().max().item() < 1e-3, x.sum(0)[0].item(), x.half().sum().item())
"""


@pytest.mark.skipif(not choice.available(), reason="no kernels without llvmlite")
def test_kernels_for_every_level_compute_the_same() -> None:
    from flambeau._runtime import features

    present = features.host()[2]
    usable = [name for name, level in LEVELS.items() if level.features <= present]
    made = {}
    for name in ("native", *usable):
        result = python(USED, FLAMBEAU_CPU=name, FLAMBEAU_ENGINE="llvm")
        assert result.returncode == 0, result.stderr
        made[name] = result.stdout.splitlines()
    assert len({lines[1] for lines in made.values()}) == 1
    assert made["native"][1].startswith("True ")
    facts = {name: lines[0].split() for name, lines in made.items()}
    for name in usable:
        assert facts[name][0] == LEVELS[name].cpu
    digests = [fact[3] for fact in facts.values()]
    assert len(set(digests)) == len(digests), "kernels of two levels share names on the disk"


@pytest.mark.skipif(not processor.X86, reason="the levels of x86")
@pytest.mark.skipif(not choice.available(), reason="no kernels without llvmlite")
@pytest.mark.parametrize("name, bits", [("baseline", 128), ("avx2", 256), ("avx512", 512)])
def test_levels_of_x86(name: str, bits: int) -> None:
    from flambeau._runtime import features

    result = python(USED, FLAMBEAU_CPU=name)
    if LEVELS[name].features <= features.host()[2]:
        assert result.stdout.split()[1:3] == [str(bits), str(bits > 128)]
    else:
        assert "ValueError: FLAMBEAU_CPU is" in result.stderr


@pytest.mark.skipif(not choice.available(), reason="no kernels without llvmlite")
def test_flambeau_env_shows_the_choice() -> None:
    report = "from flambeau._environment import report; print(report())"
    assert "all features of this processor" in python(report).stdout
    if LEVELS:
        shown = python(report, FLAMBEAU_CPU="baseline").stdout
        assert "(FLAMBEAU_CPU=baseline)" in shown and LEVELS["baseline"].cpu in shown
