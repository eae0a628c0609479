"""`torch.compiler`: what programs ask and tell a compiler of Python, which flambeau has not.

`torch.compile` is missing, but for `disable=True`, with which nothing is to be compiled; so nothing
is ever being compiled, and marks on functions change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from flambeau._core.missing import lazily, missing

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
    "is_compiling", "is_dynamo_compiling", "is_exporting", "reset",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: Any = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """`torch.compile` where it is switched off: with `disable=True` a function or module is
    returned as it is. Without `model`: a decorator.

    Raises:
        NotImplementedInFlambeau: something is to be compiled.
        AssertionError: it can't be called.

    >>> import flambeau as torch
    >>> torch.compile(abs, disable=True) is abs
    True
    """
    if not disable:
        missing("torch", "compile")
    if model is None:
        return lambda function: compile(function, disable=True)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    return model


def is_compiling() -> bool:
    """Whether a function is being compiled or exported: never."""
    return False


def is_dynamo_compiling() -> bool:
    """Whether a function is being compiled: never."""
    return False


def is_exporting() -> bool:
    """Whether a function is being exported: never."""
    return False


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function that is to run as it is written, which all do. Without `fn`: a decorator."""
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """Functions that a compiler is to call without looking into them, as given.

    Raises:
        AssertionError: it is no function.
    """
    if isinstance(fn, list | tuple):
        return [allow_in_graph(one) for one in fn]
    if not callable(fn):
        raise AssertionError("allow_in_graph expects a callable")
    return fn


def assume_constant_result(fn: F) -> F:
    """A function whose result a compiler may keep, as given."""
    return fn


def cudagraph_mark_step_begin() -> None:
    """Mark the beginning of a step for CUDA graphs, of which there are none."""


def reset() -> None:
    """Forget what was compiled: nothing is."""


__getattr__ = lazily(__name__)
