"""Operators that are functions of other operators (`matmul`, `zeros`, `einsum`), seen only while
somebody looks.

Their public function is the row's body itself, and nothing stands between a caller and it. So that
this costs nothing, the bodies are redirected while a recording is on (`_ops/table/redirection.py`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from flambeau._core.once import Shared
from flambeau._ops.table.op import LISTENERS, REGISTRY, Op
from flambeau._ops.table.redirection import Redirection
from flambeau._tensor.tensor import Tensor
from flambeau.profiler.active import active

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

_redirection = Redirection()


def _report() -> None:
    """From now on, composites tell the recorder of their thread."""
    for op in list(REGISTRY.values()):
        _redirect(op)
    for name in METHODS:
        _redirection.add(vars(Tensor).get(name), partial(_reported, name, None))
    LISTENERS.append(_redirect)


def _report_no_more() -> None:
    if _redirect in LISTENERS:
        LISTENERS.remove(_redirect)
    _redirection.end()


reporting = Shared(_report, _report_no_more)
"""While it is entered, composites tell the recorder of their thread."""


def _redirect(op: Op) -> None:
    name = _name(op)
    if name is not None:
        _redirection.add_with_twins(op.body, partial(_reported, name, op))


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


def _in_order(op: Op | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Arguments in the order of the schema; None for what is left out before another."""
    if not kwargs or op is None:
        return args
    names = [argument.name for argument in op.schema.arguments][len(args) :]
    given = [place for place, name in enumerate(names) if name in kwargs]
    return (*args, *[kwargs.get(name) for name in names[: max(given, default=-1) + 1]])


def _reported(name: str, op: Op | None, body: Any, args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> Any:  # fmt: skip
    """Call `body`, between the words to the recorder of this thread."""
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
