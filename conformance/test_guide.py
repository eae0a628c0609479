"""The pages of the guide print the same under PyTorch and flambeau.

The tests run two pages that are short, and two that are drawn from all;
`python -m conformance.test_guide` runs all pages under both, and says what each took.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.random_seeds import generator

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "examples/guide").glob("[0-9][0-9]_*.py"))
ALWAYS = ("01_tensors", "13_nan_guard")
DRAWN = 2
NEEDS = {"06_digits": "sklearn"}


def printed(page: Path, prefix: list[str], folder: Path) -> str:
    """What a page prints on standard output, run by a command of Python."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": path}
    command = [sys.executable, *prefix, str(page)]
    result = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout


def by_torch(page: Path, folder: Path) -> str:
    return printed(page, [], folder)


def by_flambeau(page: Path, folder: Path) -> str:
    return printed(page, ["-m", "flambeau", "run"], folder)


def check(name: str, folder: Path) -> None:
    """That a page prints the same under both."""
    pytest.importorskip("matplotlib")
    pytest.importorskip(NEEDS.get(name, "matplotlib"))
    page = ROOT / f"examples/guide/{name}.py"
    expected = by_torch(page, folder)
    assert len(expected.splitlines()) > 2
    assert by_flambeau(page, folder) == expected


@pytest.mark.parametrize("name", ALWAYS)
def test_page(name: str, tmp_path: Path):
    check(name, tmp_path)


@pytest.mark.parametrize("number", range(DRAWN))
def test_drawn_page(number: int, tmp_path: Path):
    check(generator(number).choice([page.stem for page in PAGES]), tmp_path)


def test_there_are_seventeen():
    assert [page.name[:2] for page in PAGES] == [f"{number:02}" for number in range(1, 18)]


def main() -> int:
    """Every page under both; the exit status is the number of pages that differ."""
    different = 0
    for page in PAGES:
        times = [time.perf_counter()]
        texts = []
        for run in (by_torch, by_flambeau):
            texts.append(run(page, Path.cwd()))
            times.append(time.perf_counter())
        same = texts[0] == texts[1]
        different += not same
        took = [f"{after - before:.1f} s" for before, after in zip(times, times[1:], strict=False)]
        print(
            f"{page.name:26} {'same' if same else 'DIFFERENT'}  torch {took[0]}, flambeau {took[1]}"
        )
    return different


if __name__ == "__main__":
    sys.exit(main())
