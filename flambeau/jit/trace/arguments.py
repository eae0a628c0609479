"""Which operator a call is: the overload of `aten::sum` that Python's arguments fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._core.device import device
from flambeau._core.generator import Generator
from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import REQUIRED, FunctionSchema, Parameter
from flambeau.jit.ir.values import enumeration_number
from flambeau.jit.operators import table
from flambeau.jit.operators.naming import rows_of

OTHER_NAMES = {"input": "self", "axis": "dim", "keepdims": "keepdim", "x": "self", "a": "self",
               "tensor": "self"}  # fmt: skip
"""Parameters of Python's functions that schemas call otherwise."""


def is_wrapping(name: str) -> bool:
    """Whether Python makes a 0-dim tensor of a number beside a tensor: for the operators of
    arithmetic, of which any operand may be a number."""
    return any(op.numbers == "all" for op in rows_of(name.removesuffix("_")))


def choose(name: str, args: Sequence[Any], kwargs: dict[str, Any], overload: str | None = None
           ) -> tuple[FunctionSchema, list[Any]] | None:  # fmt: skip
    """The first overload of `aten::<name>` that fits, and the values of its parameters.

    Tensors stand for numbers only if nothing else fits.
    """
    bound = [(schema, bind(schema, args, kwargs)) for schema in _candidates(name, overload)]
    wrapping = is_wrapping(name)
    for lenient in (False, True):
        for schema, values in bound:
            if values is not None and all(
                value is REQUIRED or fits(parameter, value, wrapping, lenient)
                for parameter, value in zip(schema.arguments, values, strict=True)
            ):
                return schema, values
    return None


def _candidates(name: str, overload: str | None) -> list[FunctionSchema]:
    """The overloads of operators of tensors, those that write to `out` left out."""
    return [
        schema for schema in table.overloads(f"aten::{name}")
        if not any(p.written and p.keyword_only for p in schema.arguments)
        and not schema.overload.startswith("prim_") and "Dimname" not in schema.overload
        and overload in (None, schema.overload)
    ]  # fmt: skip


def bind(schema: FunctionSchema, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any] | None:
    """A value for each parameter (REQUIRED where the default is taken), or None."""
    parameters = schema.arguments
    positional = [p for p in parameters if not p.keyword_only]
    given: dict[str, Any] = {}
    args = _gathered(positional, args)
    if len(args) > len(positional):
        return None
    for parameter, value in zip(positional, args, strict=False):
        given[parameter.name] = value
    names = {p.name for p in parameters}
    for name, value in kwargs.items():
        known = name if name in names else OTHER_NAMES.get(name, name)
        if known in given or known not in names:
            if value is None and known not in names:
                continue
            return None
        given[known] = value
    values = []
    for parameter in parameters:
        if parameter.name not in given and parameter.default is REQUIRED:
            return None
        values.append(given.get(parameter.name, _eager_default(parameter)))
    return values


def _eager_default(parameter: Parameter) -> Any:
    """The functions of `torch` read the default `Mean` of a reduction as 0, none."""
    is_reduction = parameter.name == "reduction" and parameter.type == T.INT
    return 0 if is_reduction and parameter.default is not REQUIRED else REQUIRED


def _gathered(parameters: list[Parameter], args: Sequence[Any]) -> Sequence[Any]:
    """`view(2, 3)` as `view((2, 3))`: more numbers than parameters make a list."""
    for index, parameter in enumerate(parameters):
        if isinstance(parameter.type, T.ListType) and parameter.type.element == T.INT:
            rest = args[index:]
            if (
                len(rest) > 1
                and all(isinstance(v, (int, Tensor)) for v in rest)
                and (index == len(parameters) - 1 or parameter.length is None)
            ):
                return [*args[:index], list(rest)]
            if index == len(args) - 1 and parameter.length is None and isinstance(args[index], int):
                return [*args[:index], [args[index]]]
    return args


def fits(parameter: Parameter, value: Any, wrap: bool = False, lenient: bool = True) -> bool:
    """Whether a Python value can be given for a parameter.

    wrap: a number may stand for a tensor; lenient: a tensor of one element for a number.
    """
    wanted = parameter.type
    if isinstance(wanted, T.OptionalType):
        if value is None:
            return True
        wanted = wanted.inner
    if isinstance(wanted, T.ListType):
        if isinstance(value, int) and not isinstance(value, bool) and parameter.length:
            return wanted.element in (T.INT, T.FLOAT)
        return isinstance(value, (list, tuple)) and all(
            fits(Parameter("", wanted.element), item) for item in value
        )
    if not lenient and isinstance(value, Tensor) and wanted in (T.INT, T.NUMBER):
        return False
    check = CHECKS.get(wanted)
    if wrap and wanted == T.TENSOR and isinstance(value, (int, float, complex)):
        return True
    return check is not None and check(value)


def _is_int(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.dim() == 0 and not value.requires_grad  # type: ignore[attr-defined]
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        enumeration_number(value) is not None
    )


CHECKS: dict[T.Type, Any] = {
    T.TENSOR: lambda v: isinstance(v, Tensor),
    T.INT: _is_int,
    T.FLOAT: lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    T.BOOL: lambda v: isinstance(v, bool),
    T.NUMBER: lambda v: isinstance(v, (int, float, complex, bool)) or _is_int(v),
    T.STRING: lambda v: isinstance(v, str),
    T.DEVICE: lambda v: isinstance(v, (str, device)),
    T.GENERATOR: lambda v: isinstance(v, Generator),
    T.NONE: lambda v: v is None,
}
"""Which values a simple type takes."""
