"""Whether the places of sparse tensors are checked when one is made."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from flambeau._ops.sparse.constructors import Invariants

Function = TypeVar("Function", bound=Callable[..., Any])


class check_sparse_tensor_invariants:
    """Switches the checks on (or off) as a context manager, as a decorator, or for good.

    Without them, places out of range are found when they are first used.

    >>> import flambeau as torch
    >>> with torch.sparse.check_sparse_tensor_invariants():
    ...     torch.sparse_coo_tensor([[0, 5]], [1., 2.], (3,))
    Traceback (most recent call last):
    RuntimeError: size is inconsistent with indices: for dim 0, size is 3 but found index 5
    """

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Whether places are checked now."""
        return Invariants.enabled

    @staticmethod
    def enable() -> None:
        """Check from now on."""
        Invariants.enabled = True

    @staticmethod
    def disable() -> None:
        """Check no more."""
        Invariants.enabled = False

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context "
                "manager instance for context nesting."
            )
        self.saved_state = Invariants.enabled
        Invariants.enabled = self.state

    def __exit__(self, *exc: object) -> None:
        assert self.saved_state is not None, "left before it was entered"
        Invariants.enabled = self.saved_state
        self.saved_state = None

    def __call__(self, function: Function) -> Function:
        """The function with the checks switched while it runs."""

        @functools.wraps(function)
        def switched(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return switched  # type: ignore[return-value]
