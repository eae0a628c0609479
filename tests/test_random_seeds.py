"""Random tests: other draws in every run, in CI too, and the same again for the seed shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TESTS = """
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies
from tests.random_seeds import generator

drawn = []

@settings(max_examples=30)
@given(strategies.integers())
def test_examples(number):
    drawn.append(number)
    Path(__file__).with_name("examples").write_text(repr(drawn))

@pytest.mark.parametrize("number", range(2))
def test_own(number):
    Path(__file__).with_name(f"own{number}").write_text(repr(generator("own", number).random()))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "test_drawn.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def drawn(folder: Path, *options: str, ci: bool = True) -> tuple[str, list[str]]:
    """What a run prints, and what its tests have drawn."""
    inherited = {n: v for n, v in os.environ.items() if n not in ("CI", "PYTEST_ADDOPTS")}
    environment = {**inherited, "PYTHONPATH": str(ROOT), **({"CI": "true"} if ci else {})}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    result = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout, [(folder / name).read_text() for name in ("examples", "own0", "own1")]


def seed_in(output: str) -> str:
    """The seed, which is shown once."""
    (found,) = re.findall(r"--hypothesis-seed=\d+", output)
    return found


@pytest.mark.parametrize("quiet, ci", [([], False), (["-q"], True)])
def test_every_run_draws_something_new(folder: Path, quiet: list[str], ci: bool) -> None:
    first, examples = drawn(folder, *quiet, ci=ci)
    second, others = drawn(folder, *quiet, ci=ci)
    assert seed_in(first) != seed_in(second)
    assert all(one != other for one, other in zip(examples, others, strict=True))
    assert examples[1] != examples[2]
    assert not (ci and (folder / ".hypothesis" / "examples").exists())


def test_the_seed_shown_draws_the_same_again(folder: Path) -> None:
    output, examples = drawn(folder)
    again, same = drawn(folder, seed_in(output))
    assert same == examples and seed_in(again) == seed_in(output)


def test_all_workers_have_one_seed(folder: Path) -> None:
    pytest.importorskip("xdist")
    output, examples = drawn(folder, "-n", "3")
    assert drawn(folder, seed_in(output))[1] == examples
