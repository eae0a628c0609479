"""Whole programs: text, results, gradients, errors, and archives in both directions."""

from __future__ import annotations

import difflib
import io
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flambeau

from .both import LIBRARIES, load, passes_alone
from .whole import FILES, Outcome, Program, archived, methods, texts

NAMES = [
    pytest.param(file, name, id=f"{file.stem}-{name}")
    for file in FILES
    for name in load(file, "torch").PROGRAMS
]
each_program = pytest.mark.parametrize(("file", "name"), NAMES, scope="module")
"""All tests of one program follow each other, so that they share what `lru_cache` keeps."""


@pytest.fixture(autouse=True)
def _deprecated() -> Iterator[None]:
    """Torch says of every call that TorchScript is deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@lru_cache(4)
def compiled(file: Path, name: str, library: str) -> tuple[dict[str, str], bytes]:
    """The code of a script that is never run, and its archive."""
    script = Program(file, name, library).scripted()
    return methods(script, library, is_traced(file)), archived(script, library).getvalue()


def is_traced(file: Path) -> bool:
    """Whether the programs of a file are traces: of these, the layers' texts are torch's, too."""
    return file.stem == "traces"


@lru_cache(4)
def expected(file: Path, name: str) -> list[Outcome]:
    """What PyTorch's script does."""
    program = Program(file, name, "torch")
    return program.outcomes(program.scripted())


@lru_cache(4)
def expected_of_archive(file: Path, name: str) -> list[Outcome]:
    """What PyTorch's archive does in PyTorch: defaults and names of fields may be gone."""
    return outcomes_of_archive(file, name, "torch", "torch")


def outcomes_of_archive(file: Path, name: str, writer: str, reader: str) -> list[Outcome]:
    """What an archive of one library does in one."""
    _, archive = compiled(file, name, writer)
    loaded = LIBRARIES[reader].jit.load(io.BytesIO(archive))
    return Program(file, name, reader).outcomes(loaded)


def assert_same(found: Any, wanted: Any, where: str = "result") -> None:
    """Compare two plain results; floating-point numbers within tolerances."""
    if isinstance(wanted, list):
        assert isinstance(found, list), f"{where}: {found} instead of {wanted}"
        assert len(found) == len(wanted), f"{where}: {found} instead of {wanted}"
        for i, (one, other) in enumerate(zip(found, wanted, strict=True)):
            assert_same(one, other, f"{where}[{i}]")
    elif isinstance(wanted, dict):
        assert_same(found["dtype"], wanted["dtype"], where)
        assert_same(found["grad"], wanted["grad"], where)
        assert found["tensor"].shape == wanted["tensor"].shape, where
        scale = (
            max(1.0, *np.abs(wanted["tensor"]).ravel().tolist()) if wanted["tensor"].size else 1.0
        )
        np.testing.assert_allclose(
            found["tensor"], wanted["tensor"], rtol=2e-4, atol=5e-5 * scale, err_msg=where
        )
    elif isinstance(wanted, float) and isinstance(found, float):
        assert found == pytest.approx(wanted, rel=1e-4, abs=1e-6), where
    else:
        assert type(found) is type(wanted), f"{where}: {found!r} instead of {wanted!r}"
        assert found == wanted, where


def assert_outcomes(found: list[Outcome], wanted: list[Outcome], same_source: bool = True) -> None:
    """Every call did the same. Only scripts of the same source fail at the same place."""
    for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
        where = f"call {number}"
        assert one.reason == other.reason, where
        assert one.raised == other.raised or not same_source, where
        assert one.printed == other.printed, where
        assert_same(one.result, other.result, where)
        assert_same(one.arguments, other.arguments, f"{where}, arguments")
        assert_same(one.gradients, other.gradients, f"{where}, gradients")


def assert_texts(found: dict[str, str], wanted: dict[str, str]) -> None:
    """The same text under the same names."""
    assert sorted(found) == sorted(wanted), sorted(found.keys() ^ wanted.keys())
    for path, text in wanted.items():
        lines = difflib.unified_diff(text.splitlines(), found[path].splitlines(), lineterm="")
        assert found[path] == text, "\n".join([path, *lines])


@each_program
def test_code(file: Path, name: str, request: pytest.FixtureRequest) -> None:
    """The code of every function and method that the program has or reaches is torch's; the text
    of layers and functions of torch is our own.
    """
    ours, theirs = (compiled(file, name, library) for library in ("flambeau", "torch"))
    assert_texts(ours[0], theirs[0])
    try:
        found, wanted = (
            texts(io.BytesIO(archive), is_traced(file)) for _, archive in (ours, theirs)
        )
        assert_texts(found, wanted)
    except AssertionError:
        if not passes_alone(request):
            raise


@each_program
def test_results(file: Path, name: str) -> None:
    """Results, gradients, errors, output and changed arguments, call after call."""
    program = Program(file, name, "flambeau")
    assert_outcomes(program.outcomes(program.scripted()), expected(file, name))


@each_program
def test_without_optimiser(file: Path, name: str) -> None:
    """The same, operator by operator."""
    program = Program(file, name, "flambeau")
    with flambeau.jit.optimized_execution(False):
        assert_outcomes(program.outcomes(program.scripted()), expected(file, name))


@each_program
@pytest.mark.parametrize(("writer", "reader"), [("torch", "flambeau"), ("flambeau", "torch"),
                                                ("flambeau", "flambeau")])  # fmt: skip
def test_archive(file: Path, name: str, writer: str, reader: str) -> None:
    """The archive of one library does in the other what the program did before."""
    found = outcomes_of_archive(file, name, writer, reader)
    assert_outcomes(found, expected_of_archive(file, name), same_source=False)


def test_programs_are_many() -> None:
    """At least 60, each with inputs."""
    assert len(NAMES) >= 60
