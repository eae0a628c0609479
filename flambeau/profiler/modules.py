"""The calls of modules, as stretches of a recording: "nn.Module: Linear_0"."""

from __future__ import annotations

import weakref
from typing import Any


class ModuleRanges:
    """Opens a record when a module's forward begins, and closes it when it is over.

    Modules are numbered by class in the order in which they are first called.
    """

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self.counts: dict[str, int] = {}
        self.running: list[tuple[Any, Any]] = []
        self.handles: list[Any] = []

    def __enter__(self) -> None:
        from flambeau.nn.module_hooks import (
            register_module_forward_hook,
            register_module_forward_pre_hook,
        )

        self.handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]

    def __exit__(self, *exc: object) -> None:
        for handle in self.handles:
            handle.remove()

    def _enter(self, module: Any, given: Any) -> None:
        record = self.recorder.open(self.name(module), "module")
        self.running.append((module, record))

    def _leave(self, module: Any, given: Any, result: Any) -> None:
        while self.running:
            last, record = self.running.pop()
            if last is module:
                self.recorder.close(record)
                return

    def name(self, module: Any) -> str:
        """The module's class and number."""
        found = self.names.get(module)
        if found is None:
            kind = type(module).__name__
            number = self.counts.get(kind, 0)
            self.counts[kind] = number + 1
            found = self.names[module] = f"nn.Module: {kind}_{number}"
        return found
