"""Random tests: other draws in every run, in CI too, and the same again for the seed shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.random_seeds import Run, is_left_out

ROOT = Path(__file__).resolve().parent.parent
TESTS = """
from pathlib import Path

import pytest

from tests.random_seeds import Run, is_left_out
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


SAMPLED = """
from pathlib import Path

import pytest

from tests.random_seeds import Run, is_left_out
from tests.random_seeds import some

@pytest.mark.parametrize("case", some("cases", range(40), 3))
def test_case(case):
    Path(__file__).with_name(f"case{case}").touch()
"""


def cases_of(folder: Path, *options: str, **variables: str) -> list[str]:
    """The cases that a run goes through."""
    for file in folder.glob("case*"):
        file.unlink()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_some.py"]
    inherited = {n: v for n, v in os.environ.items() if not n.startswith(("FLAMBEAU_", "PYTEST_"))}
    environment = {**inherited, "PYTHONPATH": str(ROOT), **variables}
    result = subprocess.run(
        [*command, *options], cwd=folder, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    return sorted(file.name for file in folder.glob("case*"))


def test_some_cases_where_samples_are_asked_for(folder: Path) -> None:
    """The same for a seed, in all workers; all cases elsewhere."""
    (folder / "test_some.py").write_text(SAMPLED)
    first = cases_of(folder, "--hypothesis-seed=3", FLAMBEAU_SAMPLES="1")
    assert len(first) == 3
    workers = pytest.importorskip("xdist") and ("-n", "2")
    assert cases_of(folder, "--hypothesis-seed=3", *workers, FLAMBEAU_SAMPLES="1") == first
    assert cases_of(folder, "--hypothesis-seed=4", FLAMBEAU_SAMPLES="1") != first
    assert len(cases_of(folder)) == 40


def test_one_file_in_so_many(folder: Path) -> None:
    """Each in some runs, and what is no file of tests in all."""
    outcomes = set()
    for seed in range(8):
        Run.seed, before = seed, Run.seed
        try:
            with pytest.MonkeyPatch.context() as patch:
                assert not is_left_out(folder / "test_drawn.py", folder)
                patch.setenv("FLAMBEAU_FILES_IN", "2")
                outcomes.add(is_left_out(folder / "test_drawn.py", folder))
                assert not is_left_out(folder / "conftest.py", folder)
        finally:
            Run.seed = before
    assert outcomes == {False, True}
