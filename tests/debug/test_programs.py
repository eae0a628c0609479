"""Programs as people write them: with one planted fault, found in its line, and without any.

`programs/faults`: lines that end with `# advice: topic`, for `advise`; `programs/nan`: the line
that ends with `# nan`, for `nan_guard`; `programs/clean`: nothing to find for either.
"""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flambeau import hook
from flambeau.debug import NonFiniteError, advise, nan_guard
from flambeau.debug.advice import TOPICS

PROGRAMS = Path(__file__).parent / "programs"


def programs(kind: str) -> list[Path]:
    found = sorted((PROGRAMS / kind).glob("*.py"))
    assert found
    return found


@pytest.fixture(autouse=True)
def torch_is_flambeau() -> Iterator[None]:
    assert "torch" not in sys.modules
    assert hook.install()
    yield
    hook.uninstall()


def marked(program: Path, mark: str) -> list[tuple[int, str]]:
    """Numbers of the marked lines, and what stands behind the mark."""
    lines = enumerate(program.read_text().splitlines(), 1)
    found = [(number, re.search(rf"# {mark}(.*)$", line)) for number, line in lines]
    return [(number, match[1].strip()) for number, match in found if match]


@pytest.mark.parametrize("program", programs("faults"), ids=lambda path: path.stem)
def test_faults_are_found(program: Path) -> None:
    with advise(quiet=True) as report:
        runpy.run_path(str(program))
    found = {(item.place.line, item.topic) for item in report.items if item.place is not None}
    assert found == set(marked(program, "advice: "))
    assert all(item.place.file == str(program) for item in report.items if item.place is not None)
    assert all(item.text and item.better and item.count > 0 for item in report.items)


def test_every_topic_has_a_program() -> None:
    found = {topic for program in programs("faults") for _, topic in marked(program, "advice: ")}
    assert found == {topic.title for topic in TOPICS}


@pytest.mark.parametrize("program", programs("nan"), ids=lambda path: path.stem)
def test_nan_is_found(program: Path) -> None:
    [(line, _)] = marked(program, "nan")
    with pytest.raises(NonFiniteError) as error, nan_guard():
        runpy.run_path(str(program))
    assert f"{program}:{line}, in " in str(error.value)


@pytest.mark.parametrize("program", programs("clean"), ids=lambda path: path.stem)
def test_no_false_alarm(program: Path) -> None:
    with nan_guard(), advise(quiet=True) as report:
        runpy.run_path(str(program))
    assert str(report.items) == "[]"
    assert report.operators > 0
