"""Every public operator, redirected for as long as a trace runs.

A trace has to see `torch.relu(x)`, `x.relu()`, `F.relu(x)` and a `relu` that a file has imported by
name, and an operator may not pay for it while nobody traces. All of them are Python functions, so
it is the functions' code that is exchanged: as long as a trace is active, each runs a line that
hands its arguments to the tracer; afterwards it has its own code again. References to a function
keep their meaning, whoever holds them.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flambeau._ops import loading, namespace
from flambeau._tensor.conversion import from_numpy, tensor
from flambeau._tensor.tensor import Tensor

Handler = Callable[[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""What is called instead: with the public name, the operator itself, and its arguments."""


class Exchange:
    """The functions whose code is exchanged now, and what they had before."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.before: dict[Any, types.CodeType] = {}

    def redirect(self, name: str, function: Any) -> None:
        """Let a function hand its arguments to the handler."""
        if name.removeprefix("Tensor.") in QUIET:
            return
        if not isinstance(function, types.FunctionType) or function in self.before:
            return
        self.before[function] = function.__code__
        itself = types.FunctionType(function.__code__, function.__globals__, function.__name__,
                                    function.__defaults__, function.__closure__)  # fmt: skip
        itself.__kwdefaults__ = function.__kwdefaults__
        handler = self.handler

        def call(*args: Any, **kwargs: Any) -> Any:
            return handler(name, itself, args, kwargs)

        function.__code__ = _line(call, function)

    def restore(self) -> None:
        """Give every function its own code again."""
        for function, code in self.before.items():
            function.__code__ = code
        self.before.clear()


def _line(target: Callable[..., Any], function: types.FunctionType) -> types.CodeType:
    """Code that calls `target`, for a function with just as many closure cells."""
    constants = tuple(target if c == TARGET else c for c in _template.__code__.co_consts)
    code = function.__code__
    return _template.__code__.replace(co_consts=constants, co_name=code.co_name,
                                      co_freevars=code.co_freevars)  # fmt: skip


TARGET = "what is called instead"


def _template(*args: Any, **kwargs: Any) -> Any:
    target: Any = "what is called instead"
    return target(*args, **kwargs)


lock = threading.RLock()
"""One trace at a time: functions belong to the whole process."""


@contextmanager
def redirected(handler: Handler) -> Iterator[None]:
    """Redirect what has been built so far, and what is built meanwhile."""
    exchange = Exchange(handler)
    with lock:
        try:
            for name, function in _functions():
                exchange.redirect(name, function)
            loading.on_build.append(exchange.redirect)
            yield
        finally:
            if exchange.redirect in loading.on_build:
                loading.on_build.remove(exchange.redirect)
            exchange.restore()


def _functions() -> Iterator[tuple[str, Any]]:
    """Operators with their public names: functions, in-place forms, what else Tensor has."""
    yield from list(namespace._functions.items())
    for name, function in list(namespace._inplace.items()):
        yield f"{name}_", function
    for name, function in list(vars(Tensor).items()):
        if name in PROPERTIES:
            yield name, getattr(Tensor, name).fget
        else:
            yield f"Tensor.{name}", function
    from flambeau.jit.modules.functions import ScriptFunction, ScriptMethod
    from flambeau.nn import Module
    from flambeau.nn.layers.rnn import RNNBase

    for function in PUBLIC:
        yield function.__name__, function
    yield "Module.__call__", Module.__call__
    yield "RNNBase._run", RNNBase._run
    yield "ScriptFunction.__call__", ScriptFunction.__call__
    yield "ScriptFunction.__call__", ScriptMethod.__call__


QUIET = frozenset(
    "__init__ __new__ __setattr__ __getattr__ __getattribute__ __repr__ __format__ __str__ "
    "__hash__ __reduce__ __reduce_ex__ __setstate__ __deepcopy__ __copy__ __dir__ __del__ "
    "dim ndimension is_contiguous stride storage_offset data_ptr untyped_storage storage "
    "element_size nbytes is_floating_point is_complex is_signed dense_dim sparse_dim "
    "requires_grad_ register_hook retain_grad backward get_device is_pinned".split()
)
"""Methods that give nothing that a trace records."""
PROPERTIES = ("shape", "T", "mT", "H", "mH", "data")
"""Properties that a trace records."""
PUBLIC: tuple[Callable[..., Any], ...] = (tensor, from_numpy)
"""Functions of the package that are not rows."""
