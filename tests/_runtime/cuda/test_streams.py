"""Random programs of streams on the fake driver."""

from __future__ import annotations

from typing import Any

import pytest

from tests._runtime.cuda import stream_programs


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_right_programs_have_no_fault(plug: Any, start: int) -> None:
    driver = plug(seed=start)
    for seed in range(start, start + 50):
        assert stream_programs.run(driver, seed) is None, seed


def test_programs_that_forget_to_wait_are_found(plug: Any) -> None:
    """Nearly all: some waits follow from others."""
    found = 0
    for seed in range(40):
        found += stream_programs.run(plug(seed), seed, broken=0.5) is not None
        stream_programs.memory.allocators.clear()
        stream_programs.memory.waiting.clear()
        stream_programs.Current.arenas.clear()
    assert found >= 30
