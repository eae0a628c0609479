"""Functions that do what others do and are objects of their own.

`torch.unbind` and `torch.Tensor.unbind` compute the same, as do `torch.multiply` and `torch.mul`;
a class with `__torch_function__` is told by the object which of them was called. A twin runs the
same instructions in a code object of its own: what the interpreter learns while it runs them
belongs to one set of globals. Those of generated functions are copied, and what asks classes there
learns whose name to give.
"""

from __future__ import annotations

import copy
from functools import partial
from types import FunctionType
from typing import Any

from flambeau._ops.table import gates, redirection
from flambeau._runtime.warming import Warming
from flambeau._tensor.method_names import name_as_method
from flambeau._tensor.tensor import is_ours

ASKING = ("otherwise", "fallback", "in_earlier_form", "explain", "refused")
"""What generated functions call that may ask classes or names the function in an error, and takes
`called`."""


def twin(function: Any, called: str) -> Any:
    """A function that does the same, known as `called`: "multiply", "Tensor.unbind".

    What is no Python function is returned as it is.
    """
    if not isinstance(function, FunctionType):
        return function
    scope = function.__globals__
    is_generated = any(name in scope for name in (*ASKING, "foreign", "foreign_inplace"))
    made = _with_own_code(function, dict(scope) if is_generated else scope, called)
    for who in (gates, redirection):
        who.follow(function, made)
    if is_generated:
        _let_know(made, function, called)
    return named(made, called)


def _with_own_code(function: FunctionType, scope: dict[str, Any], called: str) -> FunctionType:
    """Another function with the same code, whatever stands before that now, and these globals; the
    code has the name, which errors look for."""
    own = gates.own_code(function)
    code = own.__code__.replace(co_qualname=called)
    made = FunctionType(code, scope, function.__name__, function.__defaults__, function.__closure__)
    for name in ("__kwdefaults__", "__doc__", "__module__", "__qualname__", "__annotations__"):
        setattr(made, name, getattr(function, name))
    made.__dict__.update(function.__dict__)
    if own is not function and made.__dict__.get("__wrapped__") is own:
        del made.__wrapped__  # type: ignore[attr-defined]
    return made


def named(function: Any, called: str) -> Any:
    """A function with the names under which it is known."""
    holder, _, name = called.rpartition(".")
    if not isinstance(function, FunctionType):
        return function
    function.__name__ = name
    if holder == "Tensor" and is_ours(function):
        name_as_method(function, name)
    elif not holder:
        function.__qualname__ = name
    return function


def _let_know(made: FunctionType, function: FunctionType, called: str) -> None:
    """Tell what a generated function calls which name it goes by."""
    scope: dict[str, Any] = made.__globals__
    for name in ASKING:
        if name in scope:
            scope[name] = partial(scope[name], called=called)
    path = getattr(function, "path", None)
    if path is not None:
        made.path = copy.copy(path)  # type: ignore[attr-defined]
        made.path.called = called  # type: ignore[attr-defined]
    for name, value in scope.items():
        if isinstance(value, Warming):
            value.scopes.append(scope)
        elif value is function:
            scope[name] = made
        elif path is not None and getattr(value, "__self__", None) is path:
            scope[name] = getattr(made.path, value.__name__)  # type: ignore[attr-defined]
