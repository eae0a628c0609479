"""What TorchScript refuses is refused with torch's kind of error, words, line and mark."""

from __future__ import annotations

from pathlib import Path

import pytest

from .both import functions, refusal

FILES = sorted(Path(__file__).with_name("refused").glob("*.py"))
PROGRAMS = [pytest.param(file, name, id=name) for file in FILES for name in functions(file)]


@pytest.mark.parametrize(("file", "name"), PROGRAMS)
def test_refusal(file: Path, name: str) -> None:
    """The class and the whole text of the error are torch's."""
    assert refusal(file, name, "flambeau") == refusal(file, name, "torch")


def test_refusals_are_many() -> None:
    """At least 30."""
    assert len(PROGRAMS) >= 30
