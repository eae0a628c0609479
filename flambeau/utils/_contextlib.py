"""`torch.utils._contextlib`: regions that decorate functions, too."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.grad_mode import _Region


class _DecoratorContextManager(_Region):
    """A base of context managers: around a call when they decorate a function."""

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """A fresh region of the same kind."""
        return self.__class__()

    def again(self) -> Any:
        """A fresh region for a call."""
        return self.clone()
