"""What recordings share: the recorder of each thread, and switches of the whole process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Active(threading.local):
    """The innermost recorder that was started in this thread and not stopped."""

    recorder: Any = None


active = Active()


class Shared:
    """What the first of several users switches on, and the last one off. `off` undoes `on` also
    where that has raised half-way."""

    def __init__(self, on: Callable[[], None], off: Callable[[], None]) -> None:
        self.on, self.off = on, off
        self.users = 0
        self.lock = threading.Lock()

    def __enter__(self) -> None:
        with self.lock:
            if not self.users:
                try:
                    self.on()
                except BaseException:
                    self.off()
                    raise
            self.users += 1

    def __exit__(self, *exc: object) -> None:
        with self.lock:
            self.users -= 1
            if not self.users:
                self.off()
