"""Every public operator, redirected to the tracer for as long as a trace runs.

`_ops/table/redirection.py` says how; here is what a trace sees.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from flambeau._ops.table import namespace
from flambeau._ops.table.redirection import Redirection
from flambeau._tensor.conversion import from_numpy, tensor
from flambeau._tensor.tensor import Tensor, on_build

Handler = Callable[[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""What is called instead: with the public name, the operator itself, and its arguments."""

lock = threading.RLock()
"""One trace at a time: `torch.jit.is_tracing` speaks of the whole process."""


@contextmanager
def redirected(handler: Handler) -> Iterator[None]:
    """Redirect what has been built so far, and what is built meanwhile."""
    redirection = Redirection()

    def redirect(name: str, function: Any) -> None:
        if name.removeprefix("Tensor.") not in QUIET:
            redirection.add(function, partial(handler, name))

    with lock:
        try:
            for name, function in _functions():
                redirect(name, function)
            on_build.append(redirect)
            yield
        finally:
            if redirect in on_build:
                on_build.remove(redirect)
            redirection.end()


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

    for function in PUBLIC:
        yield function.__name__, function
    yield "Module.__call__", Module.__call__
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
