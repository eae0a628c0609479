"""Running programs: graphs become Python functions that call operators.

| module | |
|---|---|
| `binding` | Python arguments to runtime values and back, checked by the schema |
| `python_text`, `node_text` | from a graph to the text of a Python function |
| `program` | compiled functions, kept |
| `support`, `futures` | what generated functions call |
| `failures` | errors with the program's own traceback |
| `limits`, `memory` | steps, memory and depth of programs that are not trusted |
| `contexts` | `with` blocks |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.jit import state
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import Function
from flambeau.jit.run.binding import Binder, needs_copy, outward
from flambeau.jit.run.failures import translated
from flambeau.jit.run.futures import Future
from flambeau.jit.run.limits import LimitExceeded, Limits, Meter
from flambeau.jit.run.memory import limited
from flambeau.jit.run.program import callable_of, graph_callable

__all__ = ["Future", "LimitExceeded", "Limits", "call", "callable_of", "entry_of", "graph_callable",
           "set_limits"]  # fmt: skip


def call(function: Function, args: Any, kwargs: dict[str, Any]) -> Any:
    """Call a function from Python: bind and check the arguments, run, hand out the result.

    Raises:
        RuntimeError: arguments that do not fit the schema; an operator failed.
        torch.jit.Error: the program raised.
    """
    return entry_of(function)(*args, **kwargs)


def entry_of(function: Function) -> Callable[..., Any]:
    """A Python function that binds, checks, and runs; kept for next time."""
    found = function.compiled.get("entry")
    if found is None:
        found = function.compiled["entry"] = _make_entry(function)
    return found  # type: ignore[no-any-return]


def set_limits(unit: Any, limits: Limits | None) -> Any:
    """Let the functions of a compilation unit run under limits, or without. Returns the meter."""
    unit.meter = None if limits is None else Meter(limits)
    for function in _functions(unit):
        function.compiled.clear()
    return unit.meter


def _functions(unit: Any) -> list[Function]:
    found = list(unit.functions.values())
    for type in unit.types.values():
        if isinstance(type, T.ClassType):
            found += type.methods.values()
    return found


# The text of an entry: arguments of plain classes need no binding. benchmarks/jit_overhead.py
ENTRY = """
def entry(*args, **kwargs):
    if kwargs or len(args) != {count}{tests}:
        args = bind(args, kwargs)
    try:
        result = (run if state.optimize is optimize else otherwise())(*args)
    except Exception as error:
        raised = translated(error)
    else:
        return {result}
    raise raised
"""
PLAIN_CLASSES: dict[T.Type, type] = {T.INT: int, T.FLOAT: float, T.BOOL: bool, T.STRING: str}


def _make_entry(function: Function) -> Callable[..., Any]:
    schema = function.schema
    meter = getattr(function.unit, "meter", None)

    def run() -> Callable[..., Any]:
        return _counted(callable_of(function, meter), meter)

    copies = any(needs_copy(result.type) for result in schema.returns)
    text = ENTRY.format(
        count=len(schema.arguments),
        tests="".join(f" or {_test(i, p.type)}" for i, p in enumerate(schema.arguments)),
        result="outward(result)" if copies else "result",
    )
    scope = {
        "bind": Binder(function.name, schema).bind, "run": run(), "otherwise": run,
        "translated": translated, "outward": outward, "tensors": _tensor_classes(),
        "state": state, "optimize": state.optimize,
    }  # fmt: skip
    exec(text, scope)
    made: Callable[..., Any] = scope["entry"]  # type: ignore[assignment]
    return made


def _test(index: int, type: T.Type) -> str:
    """Whether an argument has to be converted, as Python text."""
    if type == T.TENSOR:
        return f"args[{index}].__class__ not in tensors"
    if type in PLAIN_CLASSES and type != T.INT:
        return f"args[{index}].__class__ is not {PLAIN_CLASSES[type].__name__}"
    if type == T.INT:
        return f"args[{index}].__class__ is not int or not -(2**63) <= args[{index}] < 2**63"
    return "False" if index == 0 and isinstance(type, T.ClassType) else "True"


def _tensor_classes() -> frozenset[type]:
    from flambeau.nn.parameter import Parameter

    return frozenset((Tensor, Parameter))


def _counted(run: Callable[..., Any], meter: Meter | None) -> Callable[..., Any]:
    """The function, which begins to count anew when it is called from outside."""
    if meter is None:
        return run

    def counted(*values: Any) -> Any:
        meter.reset()
        if meter.limits.memory is None:
            return meter.given(run(*values))
        with limited(meter):
            return meter.given(run(*values))

    return counted
