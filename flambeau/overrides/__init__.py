"""`torch.overrides`: what classes with `__torch_function__` need, and modes.

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            print(resolve_name(func))
            return super().__torch_function__(func, types, args, kwargs)

How operators come to ask such classes: `_tensor/overriding.py`.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterable
from typing import Any

from flambeau._core import modes
from flambeau._core.missing import lazily
from flambeau._ops.table import overrides
from flambeau._tensor import overriding
from flambeau._tensor.tensor import Tensor
from flambeau.overrides import names

__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "get_default_nowrap_functions",
    "get_ignored_functions", "get_overridable_functions", "get_testing_overrides",
    "handle_torch_function", "has_torch_function", "has_torch_function_unary",
    "has_torch_function_variadic", "is_tensor_like", "is_tensor_method_or_property",
    "redispatch_function", "resolve_name", "wrap_torch_function",
]  # fmt: skip


overriding.begin()


def _get_current_function_mode() -> Any:
    """The innermost mode with `__torch_function__` that is on, or None."""
    modes_on = modes.stacks.function_modes
    return modes_on[-1] if modes_on else None


def _get_current_function_mode_stack() -> list[Any]:
    """The modes with `__torch_function__` that are on, the outermost first."""
    return list(modes.stacks.function_modes)


__getattr__ = lazily(__name__)


# ---- for functions that may be taken over


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a mode is on or one of the arguments takes part; plain tensors do not.

    Raises:
        TypeError: `relevant_args` is no iterable.
    """
    if not hasattr(relevant_args, "__iter__"):
        raise TypeError("expected a sequence")
    return bool(modes.stacks.function_modes) or bool(overriding.overloaded(relevant_args))


def has_torch_function_unary(obj: Any) -> bool:
    """`has_torch_function` of a single argument."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """`has_torch_function` of the arguments."""
    return has_torch_function(relevant_args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Let the innermost mode or one of `relevant_args` do what `public_api(*args, **kwargs)` asks.

    Here plain tensors among `relevant_args` are asked too: they decline if others are there. Inside
    of the default `__torch_function__` nobody but modes is asked.

    Raises:
        TypeError: all of them returned NotImplemented.
    """
    found: list[Any] = []
    for value in () if overriding.state.off else relevant_args:
        if type(value) is Tensor or overriding.takes_part(value):
            overriding.add_to(found, value)
    return overriding.handle(public_api, found, args, kwargs)


def wrap_torch_function(
    dispatcher: Callable[..., Iterable[Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator by which a function can be taken over; `dispatcher`, called with the same
    arguments, returns those that are asked."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            asked = dispatcher(*args, **kwargs)
            if not has_torch_function(asked):
                return function(*args, **kwargs)
            return handle_torch_function(wrapped, asked, *args, **kwargs)

        return wrapped

    return decorate


def redispatch_function(
    func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """Run a function without asking for itself; the functions that it calls do ask."""
    return overrides.redispatched(func, args, kwargs or {})


def is_tensor_like(inp: Any) -> bool:
    """Whether an object is a tensor, or its class has a `__torch_function__`."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Functions whose results `Tensor.__torch_function__` leaves as they are."""
    return overriding.unconverted()


# ---- modes


class TorchFunctionMode:
    """Takes over every function of torch that is called in its region: `with Mode(): ...`.

    While `__torch_function__` of a mode runs, the mode around it is the innermost one.
    """

    inner: Any = None

    def __init__(self) -> None:
        """Modes may take arguments of their own."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        overrides.watching.__enter__()
        modes.stacks.function_modes += [self]  # no call: no signal comes between
        return self

    def __exit__(self, *exc: object) -> None:
        del modes.stacks.function_modes[-1]
        overrides.watching.__exit__()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """A new mode, to be entered: an older way to write `cls(...)`."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets everything through."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


# ---- what can be taken over


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The full public name of a function, method or property's getter; None if it has none."""
    return names.resolve(f)


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is a method of Tensor, or the `__get__` of one of its properties."""
    return names.is_of_tensor(func)


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Public functions that cannot be taken over: they take no tensors."""
    return names.ignored()


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """For each namespace of torch: the functions that can be taken over."""
    found: dict[Any, list[Callable[..., Any]]] = {}
    for holder, name in names.overridable():
        found.setdefault(holder, []).append(getattr(holder, name))
    return found


_made: dict[Callable[..., Any], Callable[..., Any]] = {}
_lock = threading.Lock()


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that can be taken over, one with the same parameters that returns -1."""
    with _lock:
        if not _made:
            for functions in get_overridable_functions().values():
                _made.update((function, _dummy(function)) for function in functions)
    return dict(_made)


def _dummy(function: Callable[..., Any]) -> Callable[..., Any]:
    def dummy(*args: Any, **kwargs: Any) -> int:
        return -1

    dummy.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return dummy
