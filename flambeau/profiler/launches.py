"""The launches of kernels, seen only while somebody looks.

The methods that launch a kernel are exchanged for ones that report, and put back afterwards: a
launch that nobody looks at does not even test a flag.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core.once import Shared
from flambeau._runtime.launch import Kernel
from flambeau.profiler.active import active

_plain: list[tuple[str, Callable[..., Any]]] = []


def _watch() -> None:
    for method in ("__call__", "once", "parallel"):
        plain = getattr(Kernel, method)
        _plain.append((method, plain))
        setattr(Kernel, method, _reporting(plain))


def _watch_no_more() -> None:
    for method, plain in _plain:
        setattr(Kernel, method, plain)
    _plain.clear()


watching = Shared(_watch, _watch_no_more)
"""While it is entered, the recorder of each thread is told of the kernels launched there."""


def _reporting(plain: Callable[..., Any]) -> Callable[..., Any]:
    """A method that launches a kernel, between the words to the recorder of its thread."""

    def launch(self: Any, *arguments: Any, **named: Any) -> None:
        recorder = active.recorder
        current = None if recorder is None else recorder.current
        if recorder is None or (current is not None and current.kind == "kernel"):
            return plain(self, *arguments, **named)  # type: ignore[no-any-return]
        record = recorder.open(self.name, "kernel")
        try:
            plain(self, *arguments, **named)
        finally:
            recorder.close(record)

    return launch
