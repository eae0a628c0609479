"""Every test leaves the process as it was, and random ones draw something new in every run."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flambeau.jit.optimise import settings as optimiser
from tests import process_state, random_seeds

random_seeds.load_profile()  # before modules of tests are imported, whose decorators take it over


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Before Hypothesis's plugin looks for a seed."""
    random_seeds.settle(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Before pytest-xdist starts a worker."""
    random_seeds.tell(node)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files that are not drawn, before they are imported; None leaves it to other options."""
    return random_seeds.is_left_out(collection_path, config.rootpath) or None


def pytest_report_header() -> list[str]:
    """The seed, in the head of a run."""
    return random_seeds.told()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """At the end of a run without a head (-q)."""
    for line in random_seeds.told() + random_seeds.findings(
        terminalreporter.stats.get("passed", [])
    ):
        terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """A test that fails on what it drew may draw once more."""
    return (yield from random_seeds.called(pyfuncitem))


def pytest_collection_finish() -> None:
    """Before the first test. What was made until now stays: collections pass it over, which are
    many in tests of memory, and the tests themselves are many objects.
    """
    optimiser.current = replace(optimiser.current, raise_faults=True)  # so that none hides
    gc.collect()
    gc.freeze()
    process_state.note()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """After a test and its fixtures."""
    changes = process_state.changes()
    if changes:
        pytest.fail("this test leaves something behind: " + "; ".join(changes), pytrace=False)


@pytest.fixture
def forgotten_names() -> Iterator[None]:
    """Names of data pipes that a test registers are gone after it."""
    from flambeau.utils.data import IterDataPipe

    before = dict(IterDataPipe.functions)
    yield
    IterDataPipe.functions.clear()
    IterDataPipe.functions.update(before)
