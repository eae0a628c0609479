"""`set_flush_denormal`: in the calling thread and those that work for it, in all kinds of loops."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau as torch
from flambeau._runtime import denormals

COUNT = 1 << 20  # enough to be divided over threads


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_flush_denormal(False)
    torch.set_num_threads(threads)


def survivors() -> dict[str, int]:
    """How many denormal numbers operators see or give, of those that they could."""
    small, tiny = torch.full((COUNT,), 1e-30), torch.full((COUNT,), 1e-39)
    factor = torch.full((300, 300), 1e-25)
    found: dict[str, Any] = {
        "results": small * 1e-10,
        "operands": tiny * 1e10,
        "of a few numbers": tiny[:4] * 1e10,  # NumPy's loops
        "doubles": (torch.full((COUNT,), 1e-300, dtype=torch.float64) * 1e-15) * 1e30,
        "sums": tiny.sum() * 1e10,
        "sums of rows": tiny.reshape(1024, -1).sum(1) * 1e10,
        "products": (factor @ (factor * 1e8)) * 1e10,
        "transcendental": torch.full((COUNT,), -100.0).exp() * 1e10,
    }
    return {name: int((value * 1e10 != 0).sum()) for name, value in found.items()}


def test_flushing():
    before = survivors()
    assert all(before.values())
    if not torch.set_flush_denormal(True):
        pytest.skip("not on this processor")
    assert not any(survivors().values())
    assert torch.set_flush_denormal(False)
    assert survivors() == before


@pytest.mark.skipif(not denormals._can_be_set(), reason="not on this processor")
def test_threads():
    """A thread that is started takes the mode over; what it sets stays with it."""
    found = []

    def look() -> None:
        found.append(sum(survivors().values()))

    def run(function: Any) -> None:
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()

    run(lambda: torch.set_flush_denormal(True))
    look()
    torch.set_flush_denormal(True)
    run(look)
    torch.set_flush_denormal(False)
    run(look)
    assert found[0] == found[2] > 0 == found[1]


@pytest.mark.parametrize("wrong", [1, "on", None])
def test_what_is_refused(wrong: Any):
    with pytest.raises(RuntimeError, match="flush_denormal expects a bool, but got"):
        torch.set_flush_denormal(wrong)


def test_without_kernels(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(denormals, "_can_be_set", lambda: False)
    assert torch.set_flush_denormal(True) is False
