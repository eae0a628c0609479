"""Where `__torch_function__` comes in between callers and operators: see `_tensor/overriding.py`.

Rows are asked where they do not find an array (`taken_over`). Composites are written with public
operators, and would show those: once a class takes part, `through` stands at their gates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import FunctionType
from typing import Any

from flambeau._core import modes
from flambeau._core.once import Shared
from flambeau._ops.table import binder, gates
from flambeau._ops.table.loading import announced
from flambeau._ops.table.op import Op
from flambeau._ops.table.ranks import Rank
from flambeau._ops.table.redirection import Redirection
from flambeau._tensor import conversion, overriding
from flambeau._tensor.overriding import asked
from flambeau._tensor.tensor import Tensor, is_ours, on_build
from flambeau.autograd.backward import grad


def taken_over(
    op: Op, values: tuple[Any, ...], out: Any = None, *, inplace: bool = False, called: str = ""
) -> tuple[bool, Any]:
    """Whether a class among the arguments takes a row's call over, and the result.

    called: the name by which it was called, if not that of the row's own function.
    """
    found = overriding.overloaded((*values, out))
    if not found:
        return False, None
    args, kwargs = binder.as_called(op, values)
    if out is not None:
        kwargs["out"] = out
    return True, overriding.handle(public_function(op, inplace, called), found, args, kwargs)


def public_function(op: Op, inplace: bool = False, called: str = "") -> Callable[..., Any]:
    """What users call a row by: `called`, "Tensor.unbind", if that is known."""
    from flambeau._ops.table import namespace

    holder, _, own = called.rpartition(".")
    if holder == "Tensor":
        return getattr(Tensor, own)  # type: ignore[no-any-return]
    if called:
        return namespace.get_inplace(own.removesuffix("_")) if inplace else namespace.get(called)
    name = f"{op.namespace}.{op.public}" if op.namespace else op.public
    return namespace.get_inplace(name) if inplace else namespace.get(name)


# ---- composites


def through(
    function: Callable[..., Any],
    before: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """A composite's call: taken over, or as ever."""
    if overriding.state.off:
        return before(*args, **kwargs)
    taken, result = asked(function, args, kwargs)
    return result if taken else before(*args, **kwargs)


def one_by_one(
    function: Callable[..., Any],
    before: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """As `through`, for `einsum`: who takes it over gets an equation, and operands one by one."""
    from flambeau._ops.products.einsum import arguments

    if len(args) > 1 and isinstance(args[0], (str, Tensor)):
        equation, operands = arguments(args)
        args = (equation, *operands)
    return through(function, before, args, kwargs)


def declining(call: Callable[..., Any], *given: Any) -> Any:
    """`through` or `by_mode` for one of Python's operators, which may leave it to the other
    operand."""
    try:
        return call(*given)
    except TypeError:
        return NotImplemented


def _guard(name: str, function: Any) -> None:
    """Put a gate before the body of a composite, or a method that is no row's."""
    if not isinstance(function, FunctionType) or not is_ours(function):
        return
    rows = getattr(function, "ops", None) or [getattr(function, "op", None)]
    if name in UNGUARDED or all(op is not None and op.kind != "composite" for op in rows):
        return
    holder, _, own = name.rpartition(".")
    if holder == "Tensor":
        _guard_method(own, function)
    elif name == "einsum":
        gates.add(function, Rank.CLASSES, partial(one_by_one, function))
    elif not (own.startswith("_") and own.endswith("_")):
        gates.add(function, Rank.CLASSES, partial(through, function))


def _guard_method(own: str, function: Any) -> None:
    """`torch.Tensor.size(x)` asks as `x.size()` does."""
    if own in overriding.IGNORED or (own.startswith("_") and not own.endswith("__")):
        return
    public = getattr(Tensor, overriding.CALLED.get(own, own))
    call = partial(declining, through) if own in overriding.BINARY else through
    gates.add(function, Rank.CLASSES, partial(call, public))


UNGUARDED = frozenset(("is_tensor", "is_storage", "typename", "tensor", "as_tensor", "asarray",
                       "Tensor.new"))  # fmt: skip
"""Functions whose arguments take nothing over."""


def _functions() -> Iterator[tuple[str, Any]]:
    """All that is built already, with names."""
    from flambeau._ops.table import namespace

    in_place = {f"{name}_": function for name, function in namespace._inplace.items()}
    yield from {**announced, **namespace._functions, **in_place}.items()
    yield "grad", grad
    for name, value in list(vars(Tensor).items()):
        yield f"Tensor.{name}", value


def guard_composites() -> None:
    """Put gates before all composites, also those that are built later."""
    if _guard not in on_build:  # first: methods of operators build what they call
        on_build.append(_guard)
    for name, function in _functions():
        _guard(name, function)


overriding.first_class.append(guard_composites)


def redispatched(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """A function's result, without asking for the function itself."""
    if hasattr(function, "op") or hasattr(function, "ops"):  # nothing inside of a row is asked
        return overriding.disabled(function, (), args, kwargs)
    overriding.state.skipping = True
    return function(*args, **kwargs)


# ---- modes


_redirection = Redirection()


def _watch_all() -> None:
    for name, function in (*_functions(), ("tensor", conversion.tensor)):
        _watch(name, function)
    on_build.append(_watch)


def _watch_no_more() -> None:
    if _watch in on_build:
        on_build.remove(_watch)
    _redirection.end()


watching = Shared(_watch_all, _watch_no_more)
"""All functions are redirected for as long as a mode has entered it in some thread."""


def _watch(name: str, function: Any) -> None:
    """Let modes see a function, or a property that is read."""
    own = name.rpartition(".")[2]
    if own in overriding.IGNORED or (own.startswith("_") and not own.endswith("__")):
        return
    called = overriding.CALLED.get(own)
    if called is not None and called != own and name.startswith("Tensor."):
        public = getattr(Tensor, called)  # what users know it by
        _redirection.add(function, partial(declining, by_mode, public))
    elif isinstance(function, property):
        _redirection.add(function.fget, partial(by_mode, function.__get__))
    else:
        _redirection.add(function, partial(by_mode, function))


def by_mode(
    function: Callable[..., Any],
    before: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """A call while modes are on: what the innermost of this thread makes of it."""
    if not modes.stacks.function_modes:
        return before(*args, **kwargs)
    found = overriding.overloaded((*args, *kwargs.values()))
    return overriding.handle(function, found, args, kwargs)
