"""`out=` where flambeau's own function has none: compute, then store the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._ops.table import outputs
from flambeau._runtime.cpu import write
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.history import bump
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import FunctionSchema
from flambeau.jit.ir.values import dtype_number
from flambeau.jit.operators import table

OPTIONS = ("dtype", "layout", "device", "pin_memory")
"""What functions that make tensors are told; with `out` it is the type of that tensor."""


def computing(schema: FunctionSchema) -> FunctionSchema | None:
    """The overload that computes what this one stores in its last parameter, a tensor `out`."""
    given, out = schema.arguments[:-1], schema.arguments[-1:]
    if not out or out[0].name != "out" or not out[0].written or out[0].type != T.TENSOR:
        return None
    names = [(parameter.name, parameter.type) for parameter in given]
    for overload in table.overloads(schema.name):
        found = [(parameter.name, parameter.type) for parameter in overload.arguments
                 if parameter.name not in OPTIONS]  # fmt: skip
        single = len(overload.returns) == 1 and overload.returns[0].type == T.TENSOR
        if found == names and single and not any(p.written for p in overload.arguments):
            return overload
    return None


def storing(compute: Callable[..., Any], schema: FunctionSchema) -> Callable[..., Any]:
    """The function that stores what another one, of a schema, computes.

    Raises:
        RuntimeError: a result that requires grad, or that `out` cannot hold.
    """
    parameters = [parameter.name for parameter in schema.arguments]

    def call(*values: Any) -> Tensor:
        *given, out = values
        told = iter(given)
        kind = dtype_number(out.dtype)
        result = compute(*(
            (kind if name == "dtype" else None) if name in OPTIONS else next(told)
            for name in parameters
        ))  # fmt: skip
        if result.requires_grad or out.requires_grad:
            raise RuntimeError(
                f"{schema.name.partition('::')[2]}(): functions with out=... arguments don't "
                "support automatic differentiation, but one of the arguments requires grad."
            )
        outputs.check_cast(result._data.dtype, out._data.dtype)
        outputs.resize_output(out, result._data.shape)
        write(out._data, result._data)
        bump(out)
        return out  # type: ignore[no-any-return]

    return call
