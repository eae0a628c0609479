"""Operators that are functions of other operators (`matmul`, `zeros`, `einsum`), seen only while
somebody looks.

Their public function is the row's body itself, and nothing stands between a caller and it. So that
this costs nothing, the code of each body is exchanged while a recording is on for code that reports
the call and runs the old, and put back afterwards.
"""

from __future__ import annotations

import warnings
from types import CodeType, FunctionType
from typing import Any

from flambeau._ops.op import LISTENERS, REGISTRY, Op
from flambeau._tensor.tensor import Tensor
from flambeau.profiler.active import Shared, active

PYTHON_ONLY = ("nn.functional", "masked")
"""Namespaces whose composites are plain Python functions in PyTorch, which its profiler never sees;
those in `OPERATORS` are operators there."""
OPERATORS = {
    f"nn.functional.{name}": name
    for name in ("batch_norm", "dropout", "scaled_dot_product_attention")
}
QUESTIONS = frozenset((
    "as_tensor", "broadcast_shapes", "can_cast", "get_device", "numel", "result_type", "real",
    "imag", "promote_types", "sum_to_size",
))  # fmt: skip
"""What makes no tensor, or is no operator in PyTorch."""

METHODS = ("copy_", "detach_", "fill_", "item", "normal_", "random_", "to", "uniform_", "zero_")
"""Methods of tensors that are operators in PyTorch and no rows here."""

_plain: dict[FunctionType, CodeType] = {}


def _report() -> None:
    """From now on, composites tell the recorder of their thread."""
    for op in list(REGISTRY.values()):
        _exchange_row(op)
    for name in METHODS:
        _exchange(name, vars(Tensor).get(name), None)
    LISTENERS.append(_exchange_row)


def _report_no_more() -> None:
    LISTENERS.remove(_exchange_row)
    for function, code in _plain.items():
        function.__code__ = code
    _plain.clear()


reporting = Shared(_report, _report_no_more)
"""While it is entered, composites tell the recorder of their thread."""


def _exchange_row(op: Op) -> None:
    name = _name(op)
    if name is not None:
        _exchange(name, op.body, op)


def _exchange(name: str, function: Any, op: Op | None) -> None:
    if isinstance(function, FunctionType) and function not in _plain:
        _plain[function] = function.__code__
        function.__code__ = _reporting_code(name, op, _copy(function))


def _name(op: Op) -> str | None:
    """What an operator is reported as; None for what is not."""
    if op.kind != "composite" or op.backward:
        return None
    name = f"{op.namespace}.{op.public}" if op.namespace else op.public
    if op.namespace in PYTHON_ONLY:
        return OPERATORS.get(name)
    if name in QUESTIONS or name.startswith("is_"):
        return None
    return name


def _copy(body: FunctionType) -> FunctionType:
    """A function with the same code, for whatever happens to the other's."""
    copy = FunctionType(body.__code__, body.__globals__, body.__name__, body.__defaults__,
                        body.__closure__)  # fmt: skip
    copy.__kwdefaults__ = body.__kwdefaults__
    return copy


with warnings.catch_warnings():
    warnings.simplefilter("ignore", SyntaxWarning)  # a string that is called: it is exchanged
    _TEMPLATE: CodeType = compile(
        "def report(*args, **kwargs):\n    return 'the report'(args, kwargs)",
        f"<flambeau {__name__}>",
        "exec",
    ).co_consts[0]


def _in_order(op: Op | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Arguments in the order of the schema; None for what is left out before another."""
    if not kwargs or op is None:
        return args
    names = [argument.name for argument in op.schema.arguments][len(args) :]
    given = [place for place, name in enumerate(names) if name in kwargs]
    return (*args, *[kwargs.get(name) for name in names[: max(given, default=-1) + 1]])


def _reporting_code(name: str, op: Op | None, body: FunctionType) -> CodeType:
    """Code that calls `body`, between the words to the recorder of its thread."""

    def report(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        recorder = active.recorder
        if recorder is None:
            return body(*args, **kwargs)
        values = _in_order(op, args, kwargs)
        seen = recorder.before(name, values, True)
        try:
            result = body(*args, **kwargs)
        except BaseException:
            recorder.failed()
            raise
        recorder.after(name, values, result, seen)
        return result

    constants = tuple(
        report if constant == "the report" else constant for constant in _TEMPLATE.co_consts
    )
    free = body.__code__.co_freevars  # as many as the function has, though it reads none
    return _TEMPLATE.replace(co_consts=constants, co_name=name, co_freevars=free)
