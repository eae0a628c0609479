"""A hook that may want to be handed its module first; torch's files name this class."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any


class _WrappedHook:
    """Calls a hook, with its module in front if it was given one, which it does not keep alive."""

    __module__ = "flambeau.nn.modules.module"

    def __init__(self, hook: Callable[..., Any], module: Any = None) -> None:
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if module is not None:
            self.module = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.with_module:
            args = (self._alive(self.module(), "call"), *args)
        return self.hook(*args, **kwargs)

    def _alive(self, module: Any, verb: str) -> Any:
        if module is None:
            raise RuntimeError(f"You are trying to {verb} the hook of a dead Module!")
        return module

    def __getstate__(self) -> dict[str, Any]:
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if self.with_module:
            self.module = weakref.ref(self._alive(state["module"], "revive"))
