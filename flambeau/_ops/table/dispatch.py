"""The call path: one readable function per row, generated from a template.

    bind (Python's own, from the schema) -> watch (modes, if any is active) -> run -> record

`FLAMBEAU_DEBUG=source` prints the text of each function as it is made.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core import allocation, modes
from flambeau._ops.table import (
    binder,
    bits,
    earlier_forms,
    inline_calls,
    overrides,
    pointwise,
    renamed,
)
from flambeau._ops.table.call_text import (
    argument_text,
    call_text,
    number_in,
    plain_integer,
    repeated,
    required,
    size_name,
)
from flambeau._ops.table.op import Op
from flambeau._ops.table.outputs import check_out, inplace_array, write_out
from flambeau._ops.table.ranks import Rank
from flambeau._ops.table.recording import build as build_recorder
from flambeau._ops.table.recording import compile_function
from flambeau._ops.table.result_types import result_type_of
from flambeau._runtime import choice, cpu
from flambeau._tensor.bits import Bits, BitTensor, among, like, set_bits
from flambeau._tensor.sparse import NotStrided
from flambeau._tensor.tensor import Tensor, new, wrap
from flambeau.autograd.history import (
    bump,
    check_inplace,
    join_family,
    limit_view,
    rewritten,
    views_of,
)

DEBUG = frozenset(os.environ.get("FLAMBEAU_DEBUG", "").split("|"))


class Recorder:
    """The recording functions of a row, made when a call is first recorded."""

    def __init__(self, op: Op) -> None:
        self.op = op

    def __getattr__(self, name: str) -> Callable[..., None]:
        function = build_recorder(self.op, inplace=name == "inplace")
        setattr(self, name, function)
        return function


def base_scope(op: Op) -> dict[str, Any]:
    """Names that generated functions use."""
    return {
        "op": op, "body": guarded(op), "new": new, "Tensor": Tensor, "wrap": wrap,
        "ndarray": np.ndarray, "watch": modes.watch, "grad_state": modes.grad,
        "rewritten": rewritten, "enter_quiet": cpu.enter_quiet,
        "leave_quiet": cpu.leave_quiet, "QUIET": cpu.QUIET, "recorder": Recorder(op),
        "join_family": join_family, "limit_view": limit_view,
        "views_of": views_of, "explain": explain, "watched": watched, "otherwise": otherwise,
        "NotStrided": NotStrided, "set_bits": set_bits, "like": like, "BitTensor": BitTensor,
        "turned": bits.turned,
        "wants_grad": pointwise.wants_grad, "write_out": write_out, "check_out": check_out,
        "check_inplace": check_inplace, "bump": bump, "inplace_array": inplace_array,
        "asarray": np.asarray, "plain_integer": plain_integer,
        "repeated": repeated, "number_in": number_in,
        "AttributeError": AttributeError, "TypeError": TypeError, "Exception": Exception,
        "only_size": only_size, "named_sizes": named_sizes, "fallback": fallback,
        "required": required, "in_earlier_form": earlier_forms.in_earlier_form,
        **binder.defaults(op),
    }  # fmt: skip


def guarded(op: Op) -> Callable[..., Any]:
    """A row's body; of arrays, NumPy computes it where a library of kernels lacks one."""
    if op.kind == "composite":
        return op.body
    return choice.guarded(op.body, writes="!)" in op.text)


def explain(op: Op, values: tuple[Any, ...], error: Exception, called: str = "") -> Exception:
    """Torch's TypeError if an argument has the wrong type, else the error itself, in torch's words
    if it is about memory: types are looked at before anything else in torch, and here when
    something fails. `called`: the name by which the row was called."""
    wrong = binder.argument_error(op, list(values), called)
    return wrong or allocation.in_torch_words(error) or error


def otherwise(
    op: Op, values: tuple[Any, ...], error: Exception, out: Any = None, *, inplace: Any = None,
    called: str = "",
) -> Any:  # fmt: skip
    """The result where the arrays of dense tensors were not found: that of values or memory for
    tensors with a bit, that of the form for sparse tensors, if one is among the arguments. Else the
    error, in torch's words if it is a TypeError.

    `inplace`: what to call again, if that was the form in place. `called`: the name by which the
    row was called, for classes that take over.
    """
    if Bits.exist:
        found = among((*values, out))
        if found:
            return bits.run(op, values, found, out, inplace)
    if not isinstance(error, NotStrided):
        plain = binder.with_dtypes(op, values)
        if plain is not None:
            result = CONVERTED.setdefault(op.full_name, Plain(op))(*plain)
            return result if out is None else write_out(op, out, result, plain)
        in_place = inplace is not None
        taken, result = overrides.taken_over(op, values, out, inplace=in_place, called=called)
        if taken:
            return result
        raise explain(op, values, error, called) from None
    from flambeau._ops.sparse import table

    head, dot, overload = op.full_name.partition(".")
    prefix = f"{op.namespace}_" if op.namespace in ("linalg", "special", "fft") else ""
    name = f"{prefix}{head}{'_' if inplace else ''}{dot}{overload}"
    return table.call(name, values, out)


def size_list(sizes: Any) -> Any:
    """`view(2, 3)` and `view((2, 3))` alike."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        return sizes[0]
    return sizes


def only_size(sizes: Any) -> Any:
    """The same where one thing was given; what is no size is marked, for errors."""
    first = sizes[0]
    if first.__class__ is int:
        return sizes
    if isinstance(first, (tuple, list)):
        return first
    return sizes if binder.is_integer(first) else binder.Alone(sizes)


def named_sizes(op: Op, sizes: Any, named: dict[str, Any]) -> Any:
    """The sizes of `x.view(size=(2, 3))`; what other names there are is an error."""
    wanted = size_name(op)
    if not sizes and len(named) == 1:
        for name in (wanted, binder.NUMPY_NAMES.get(wanted)):
            if name in named:
                return named[name]
        if op.fallback and "dtype" in named:
            return (named["dtype"],)
    if not named:
        raise TypeError(f'{op.public}() missing 1 required positional arguments: "{wanted}"')
    name = next((name for name in named if name != wanted), wanted)
    raise TypeError(f"{op.public}() got an unexpected keyword argument '{name}'")


def fallback(op: Op, values: tuple[Any, ...], error: Exception, called: str = "") -> Any:
    """The result of the overload for arguments of other types, or this one's error."""
    from flambeau._ops.table.namespace import get

    if isinstance(error, NotStrided):
        return otherwise(op, values, error, called=called)
    taken, result = overrides.taken_over(op, values, called=called)
    if taken:
        return result
    result = get(op.fallback)(*values)
    if result is NotImplemented:
        raise explain(op, values, error, called) from None
    return result


CONVERTED: dict[str, Plain] = {}
"""Functions that were called with Python types for element types."""
Watcher = Callable[[Op, Callable[..., Any], tuple[Any, ...], bool | None], Any]
WATCHERS: list[Watcher] = []
"""What stands between a call and its operator, by rank: each returns NotImplemented or the
result."""
_ranks: dict[Watcher, Rank] = {}


def add_watcher(watcher: Watcher, rank: Rank) -> bool:
    """Let a handler see the calls of rows from now on; whether it did not before."""
    if watcher in WATCHERS:
        return False
    _ranks[watcher] = rank
    WATCHERS[:] = sorted(_ranks, key=_ranks.__getitem__)
    return True


ALONE: list[Watcher] = []
"""The watcher of tensors on devices, for calls that no mode looks at."""
WITHOUT_NUMBERS: list[Callable[[Op, tuple[Any, ...], dict[str, Any]], Any]] = []
"""The same for composites that look at numbers, which some tensors do not have at hand."""


def watched(
    op: Op, plain: Callable[..., Any], values: tuple[Any, ...], functional: bool | None = True
) -> Any:
    """A call while a mode is active: modes may take it over; then it runs as usual.

    `functional` says that the result is new memory: False in place, None with `out=`.
    """
    watch = modes.watch
    if watch.active == watch.devices and ALONE:  # no mode: only that tensors may lie on devices
        result = ALONE[0](op, plain, values, functional)
        return plain(*values) if result is NotImplemented else result
    observers = modes.stacks.observers
    if not observers:
        return taken_over(op, plain, values, functional)
    name = f"{op.namespace}.{op.public}" if op.namespace else op.public.lstrip("_")
    seen = [observer.before(name, values, functional) for observer in observers]
    try:
        result = taken_over(op, plain, values, functional)
    except BaseException:
        for observer in observers:
            observer.failed()
        raise
    for observer, what in zip(observers, seen, strict=True):
        observer.after(name, values, result, what)
    return result


def taken_over(op: Op, plain: Callable[..., Any], values: tuple[Any, ...],
               functional: bool | None) -> Any:  # fmt: skip
    """The result of the first mode that has one, or of the operator."""
    for watcher in WATCHERS:
        result = watcher(op, plain, values, functional)
        if result is not NotImplemented:
            return result
    return plain(*values)


def make(op: Op) -> Callable[..., Any]:
    """The public function of a row."""
    if op.kind == "composite" and not op.backward:
        if "<locals>" in op.body.__qualname__:  # one of several functions with the same text
            op.body.__qualname__ = op.public
        body = _asked_for_numbers(op) if op.shape is not None else op.body
        return renamed.public_function(op, _watched_body(op) if op.autocast else body)
    if op.kind == "pointwise":
        from flambeau._ops.table.elementwise_path import make_pointwise

        return make_pointwise(op)
    function = compile_text(op, call_text(op), op.public)
    function.plain = Plain(op)
    return finish(function, op)


def _watched_body(op: Op) -> Callable[..., Any]:
    """The body of a composite, whose arguments autocast may change."""
    from flambeau._ops.table import autocast

    return autocast.around(op)


def _asked_for_numbers(op: Op) -> Callable[..., Any]:
    """The body of a composite that looks at numbers, which tensors without memory do not have."""
    body = op.body

    @functools.wraps(body)
    def call(*args: Any, **kwargs: Any) -> Any:
        if modes.watch.results:
            for watcher in WITHOUT_NUMBERS:
                result = watcher(op, args, kwargs)
                if result is not NotImplemented:
                    return result
        return body(*args, **kwargs)

    return call


class Plain:
    """The same function without the test for active modes, made when first needed.

    `of_memory`: of a view's row, what makes views of tensors with bits: of their memory, with the
    same bits.
    """

    def __init__(self, op: Op, *, of_memory: bool = False) -> None:
        self.op = op
        self.of_memory = of_memory
        self.function: Callable[..., Any] | None = None

    def __call__(self, *values: Any) -> Any:
        if self.function is None:
            text = call_text(self.op, plain=True)
            if self.of_memory:
                text = text_of_memory(self.op, text)
            self.function = compile_text(self.op, text, "plain")
        return self.function(*values)


def text_of_memory(op: Op, text: str) -> str:
    """A view's text where it finds the memory of a tensor with bits, which go on to the result."""
    source = binder.python_name(op, op.schema.arguments[0])
    text = text.replace(f"{source}._data", f"{source}._stored", 1)
    text = text.replace("return otherwise(op, ", "raise explain(op, ")
    if op.turn:
        return text
    bits = ", ".join(f"{{}}.{bit}" for bit in ("_conjugated", "_negated"))
    made = f"result._stored = computed\n    {bits} = {bits}".format(*["result"] * 2, *[source] * 2)
    alone = text.replace("new(Tensor)", "new(BitTensor)").replace("result._data = computed", made)
    return (
        text.replace("return result", f"return like({source}, result)") if alone == text else alone
    )


def compile_text(op: Op, text: str, name: str) -> Callable[..., Any]:
    """Compile the text of a row's function."""
    if "source" in DEBUG:
        sys.stderr.write(text + "\n")
    name = name.rpartition(".")[2]
    scope = base_scope(op)
    if len(op.schema.returns) > 1:
        scope["results"] = result_type(op)
    scope["plain"] = Plain(op)
    if inline_calls.serve(op):
        arguments = ", ".join(argument_text(op, a) for a in op.schema.arguments)
        names = ", ".join(binder.python_name(op, a) for a in op.schema.arguments)
        run = eval(f"lambda {names}: body({arguments})", scope)
        scope["inline"] = inline_calls.warming(scope, run, op)
    function: Callable[..., Any] = compile_function(op.full_name, text, scope, name)
    if op.factors:
        bits.let_see_factors(op, function)
    return function


def finish(function: Callable[..., Any], op: Op) -> Callable[..., Any]:
    """Give a generated function the row's name and docstring."""
    function.__doc__ = op.doc
    function.__qualname__ = function.__name__
    function.__module__ = "torch" + (f".{op.namespace}" if op.namespace else "")
    function.op = op  # type: ignore[attr-defined]
    return function


def result_type(op: Op) -> Any:
    """What makes the named tuple of several results: `torch.return_types.max(values, indices)`."""
    names = op.schema.returns
    if not all(names):
        return tuple_of
    return result_type_of(op.name if op.namespace else op.public, names)._make


def tuple_of(results: Any) -> tuple[Any, ...]:
    """Several unnamed results."""
    return tuple(results)
