"""`fork` and `wait` in Python: the call is made at once, its result kept in a Future."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from flambeau.jit.run.futures import Future

__all__ = ["Future", "fork", "wait"]


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """Call a function; in a script, `wait` gives the result when it is needed."""
    warnings.warn(
        "`torch.jit.fork` is deprecated. Please use `torch.compile` instead.",
        DeprecationWarning,
        stacklevel=2,
    )
    if not callable(func):
        raise TypeError(f"Object of type '{type(func).__name__}' is not an instance of 'function'")
    future: Future[Any] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Any) -> Any:
    """The result of a Future, waited for."""
    warnings.warn(
        "`torch.jit.wait` is deprecated. Please use `torch.compile` instead.",
        DeprecationWarning,
        stacklevel=2,
    )
    if not isinstance(future, Future):
        raise TypeError("wait(): incompatible function arguments. The following argument types are "
                        "supported:\n    1. (arg0: torch._C.Future)")  # fmt: skip
    return future.wait()


_fork, _wait = fork, wait
