"""A fake GPU for a test: no memory, stream or event of another test is seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flambeau._runtime.cuda import memory, pinned, settings
from flambeau._runtime.cuda.fake import FakeDriver

Plug = Callable[..., FakeDriver]


def forget() -> None:
    """Forget all that was taken from a driver."""
    memory.allocators.clear()
    memory.waiting.clear()
    memory.capturing.count = 0
    memory.Current.__init__()  # type: ignore[misc]
    memory.Current.device = memory.Current.stream = 0
    for table in (pinned.sizes, pinned.free, pinned.events):
        table.clear()
    pinned.starts.clear()
    settings.Chosen.settings = None


@pytest.fixture
def plug(monkeypatch: Any) -> Iterator[Plug]:
    """Plug a fake GPU in: plug(seed=None, devices=1)."""
    forget()

    def plugged(seed: int | None = None, devices: int = 1) -> FakeDriver:
        driver = FakeDriver(seed, devices)
        monkeypatch.setattr(memory, "driver", lambda: driver)
        return driver

    yield plugged
    forget()
