"""Every test leaves the process as it was."""

from __future__ import annotations

import gc

import pytest

from tests import process_state


def pytest_collection_finish() -> None:
    """Before the first test. What was made until now stays: collections pass it over, which are
    many in tests of memory, and the tests themselves are many objects.
    """
    gc.collect()
    gc.freeze()
    process_state.note()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """After a test and its fixtures."""
    changes = process_state.changes()
    if changes:
        pytest.fail("this test leaves something behind: " + "; ".join(changes), pytrace=False)
