"""The progress of a command on a large file: one line on stderr, and only on a terminal."""

from __future__ import annotations

import sys
import time
from typing import Any

from flambeau._commands.common import in_units

PATIENCE = 0.5  # seconds before the first line: short work needs none
INTERVAL = 0.1  # seconds between two lines
CHUNK = 1 << 22


class Progress:
    """Counts bytes towards a total: `with Progress("verify", total) as progress: ...`."""

    def __init__(self, title: str, total: int) -> None:
        self.title = title
        self.total = total
        self.done = 0
        self.start = time.monotonic()
        self.next_line = self.start + PATIENCE
        self.shown = False
        self.wanted = sys.stderr.isatty()

    def advance(self, count: int) -> None:
        """`count` more bytes are done."""
        self.done += count
        if not self.wanted:
            return
        now = time.monotonic()
        if now < self.next_line:
            return
        self.next_line = now + INTERVAL
        self.shown = True
        share = min(100, 100 * self.done // max(self.total, 1))
        sys.stderr.write(
            f"\r\x1b[K{self.title}: {share:3} %  {in_units(self.done)} of {in_units(self.total)}, "
            f"{now - self.start:.0f} s"
        )
        sys.stderr.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


class CountedSink:
    """A file whose writes advance a progress, large ones in steps."""

    def __init__(self, sink: Any, progress: Progress) -> None:
        self.sink = sink
        self.progress = progress

    def write(self, data: Any, /) -> None:
        """Write bytes or a buffer."""
        view = memoryview(data).cast("B") if memoryview(data).nbytes else b""
        for start in range(0, len(view), CHUNK):
            chunk = view[start : start + CHUNK]
            self.sink.write(chunk)
            self.progress.advance(len(chunk))
