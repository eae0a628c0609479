"""Forms that follow from flambeau's operator rows, from methods of tensors and from functions.

`aten::sum.dim_IntList` is the row `sum.dim_IntList`; `aten::add.Scalar` is the row `add.Tensor`,
which takes numbers; `aten::relu_` is the in-place form of `relu`; `out=` goes where rows have it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from flambeau._ops.table import binder
from flambeau._ops.table.dispatch import make
from flambeau._ops.table.elementwise_path import make_inplace
from flambeau._ops.table.index import ALIASES
from flambeau._ops.table.inplace import make_kernel_inplace
from flambeau._ops.table.namespace import get
from flambeau._ops.table.op import BY_NAME, Op
from flambeau._ops.table.schema import REQUIRED as NO_DEFAULT
from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import REQUIRED, FunctionSchema, Parameter
from flambeau.jit.operators.conversions import without_none
from flambeau.jit.operators.forms import ANY_VALUE, CONVERSIONS, Form, Passing, is_pinned
from flambeau.jit.operators.naming import PREFIXES, public_names

DROPPED = ANY_VALUE | {"pin_memory", "memory_format", "layout", "device", "generator", "dtype"}
"""Parameters that a row may lack; the call refuses values that would mean something."""
RENAMED = {
    "a": "input", "x": "input", "tensors": "operands", "axis0": "dim0", "axis1": "dim1",
    "split_size": "split_size_or_sections", "split_sizes": "split_size_or_sections",
    "sections": "indices_or_sections", "indices": "indices_or_sections",
    "tensor_indices_or_sections": "indices_or_sections", "rcond": "rtol", "train": "training",
}  # fmt: skip
"""Names of parameters in schemas, and what functions of Python call them."""


def derive(schema: FunctionSchema) -> Form | None:
    """The form of an operator, if a row, method or function does what it says."""
    short = schema.name.partition("::")[2]
    outputs = _outputs(schema)
    if schema.full_name in UNLIKE:
        return None
    found = row_of(schema)
    if found is not None:
        op, passing = found
        return _form(schema, row_function(op, _in_place(schema)), passing, outputs)
    return _of_function(schema, short, outputs) or _of_public(schema, short, outputs)


def row_of(schema: FunctionSchema) -> tuple[Op, list[Passing]] | None:
    """The row that an overload stands for, and how its arguments go there, or None."""
    if schema.full_name in UNLIKE:
        return None
    in_place, outputs = _in_place(schema), _outputs(schema)
    short = schema.name.partition("::")[2]
    for op in _rows(short.removesuffix("_") if in_place else short, schema.overload):
        passing = _row_passing(op, schema, outputs)
        if passing is None or (in_place and not op.inplace) or (outputs and not op.out):
            continue
        return op, passing
    return None


def _in_place(schema: FunctionSchema) -> bool:
    """Whether an overload writes its result into its first argument."""
    first = schema.arguments[0] if schema.arguments else None
    return first is not None and first.written and schema.name.endswith("_")


def _outputs(schema: FunctionSchema) -> list[Parameter]:
    """The parameters that are `out=`."""
    return [p for p in schema.arguments if p.keyword_only and p.written]


def _form(schema: FunctionSchema, function: Callable[..., Any], passing: list[Passing],
          outputs: list[Parameter]) -> Form:  # fmt: skip
    if len(outputs) > 1:
        function = _several_outputs(function, len(outputs))
    returns = schema.returns
    as_list = len(returns) == 1 and isinstance(returns[0].type, T.ListType)
    return Form(function, tuple(passing), as_list=as_list)


def _several_outputs(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The function, whose `out=` is a tuple, with keywords out0, out1, …"""

    def with_outputs(*args: Any, **kwargs: Any) -> Any:
        out = tuple(kwargs.pop(f"out{i}") for i in range(count))
        return function(*args, **kwargs, out=out)

    return with_outputs


# ---- rows


def _rows(short: str, overload: str) -> Iterator[Op]:
    """The rows of a name, that of the same overload first."""
    for public in public_names(short):
        name = ALIASES.get(public, public)
        if name in BY_NAME:
            found = sorted(BY_NAME[name], key=lambda op: op.order)
            yield from sorted(found, key=lambda op: op.overload != overload)


_made: dict[tuple[str, bool], Callable[..., Any]] = {}


def row_function(op: Op, in_place: bool = False) -> Callable[..., Any]:
    """The function of a row, whatever other rows its name has."""
    public = f"{op.namespace}.{op.public}" if op.namespace else op.public
    key = (f"{op.namespace}.{op.full_name}", in_place)
    if key not in _made:
        if in_place:
            builder = make_inplace if op.kind == "pointwise" else make_kernel_inplace
            _made[key] = builder(op)
        else:
            _made[key] = get(public) if len(BY_NAME[public]) == 1 else make(op)
    return _made[key]


def _row_passing(op: Op, schema: FunctionSchema, outputs: list[Parameter]) -> list[Passing] | None:
    """How arguments go to a row's function; None if they do not fit."""
    known = {binder.python_name(op, a): a for a in op.schema.arguments}
    order = [name for name, a in known.items() if not a.keyword_only]
    made, used = [], set()
    for position, parameter in enumerate(schema.arguments):
        if parameter in outputs:
            made.append(_output(parameter, outputs))
            continue
        name = _known_name(parameter.name, known) or _first_name(position, parameter, known)
        if name is None:
            if parameter.name not in DROPPED:
                return None
            made.append(_dropped(parameter))
            continue
        argument = known[name]
        if not _compatible(op, argument, position, parameter):
            return None
        used.add(name)
        default = REQUIRED if argument.default is NO_DEFAULT else argument.default
        place = order.index(name) if name in order else None
        pins = name == "pin_memory" and not argument.optional
        convert = is_pinned if pins else CONVERSIONS.get(argument.type)
        made.append(Passing(name, place, convert, default))
    missing = [name for name, a in known.items() if name not in used and a.default is NO_DEFAULT]
    return None if missing else made


def _dropped(parameter: Parameter) -> Passing:
    return Passing(parameter.name, default=parameter.default, dropped=True)


def _output(parameter: Parameter, outputs: list[Parameter]) -> Passing:
    return Passing("out" if len(outputs) == 1 else f"out{outputs.index(parameter)}")


def _first_name(position: int, parameter: Parameter, known: dict[str, Any]) -> str | None:
    """The first operand is what it is, whatever functions call it: `x` of `vector_norm`."""
    return next(iter(known), None) if position == 0 and parameter.type == T.TENSOR else None


def _known_name(name: str, known: dict[str, Any]) -> str | None:
    for candidate in (name, {"self": "input"}.get(name, name), RENAMED.get(name, name)):
        if candidate in known:
            return candidate
    return {"from": "from_", "lambda": "lambda_"}.get(name)


NUMBERS = frozenset(("Scalar", "float", "int", "bool", "ScalarType", "Layout", "MemoryFormat"))


def _compatible(op: Op, argument: Any, position: int, parameter: Parameter) -> bool:
    """Whether a row's parameter takes what the schema's one is given."""
    wanted = without_none(parameter.type)
    if isinstance(wanted, T.ListType):
        if not argument.is_list:
            return False
        return argument.is_tensor == (without_none(wanted.element) == T.TENSOR)
    if wanted == T.TENSOR:
        return bool(argument.is_tensor and not argument.is_list)
    if argument.is_list:
        return False
    if wanted in (T.NUMBER, T.FLOAT, T.INT, T.BOOL):
        if argument.is_tensor:
            return wanted == T.NUMBER and binder.takes_number(op, position)
        return argument.type in NUMBERS and (wanted != T.BOOL or argument.type == "bool")
    if wanted == T.STRING:
        return bool(argument.type == "str")
    return argument.type in ("Device", "Generator")


# ---- public functions, which choose among several rows by themselves


def _of_public(schema: FunctionSchema, short: str, outputs: list[Parameter]) -> Form | None:
    """The function or method of the name, with arguments in the schema's order."""
    if outputs:
        return None
    function = _public(short, schema)
    if function is None:
        return None
    passing = []
    for position, parameter in enumerate(schema.arguments):
        dropped = parameter.name in DROPPED - {"dtype"} and parameter.keyword_only
        convert = CONVERSIONS.get(parameter.name) if _is_int(parameter) else None
        name = "input" if parameter.name == "self" else parameter.name
        place = None if parameter.keyword_only else position
        default = None if parameter.keyword_only and parameter.default is None else REQUIRED
        passing.append(Passing(name, place, convert, default, dropped=dropped))
    return _form(schema, function, passing, outputs)


def _is_int(parameter: Parameter) -> bool:
    return without_none(parameter.type) == T.INT


def _public(short: str, schema: FunctionSchema) -> Callable[..., Any] | None:
    first = schema.arguments[0] if schema.arguments else None
    if first is not None and first.type == T.TENSOR and (first.written or first.name == "self"):
        method: Callable[..., Any] | None = getattr(Tensor, short, None)
        if callable(method):
            return method
    for prefix, public in PREFIXES.items():
        name = f"{public}{short.removeprefix(prefix)}"
        if short.startswith(prefix) and name in BY_NAME:
            return get(name)
    return None


UNLIKE = frozenset((
    "aten::addmm.dtype", "aten::baddbmm.dtype", "aten::bmm.dtype", "aten::mm.dtype",
    "aten::view.dtype", "aten::view_copy.dtype", "aten::div.out_mode", "aten::divide.out_mode",
    "aten::_ctc_loss.Tensor",
    "aten::einsum.sublist", "aten::sparse_coo_tensor.size", "aten::pin_memory", "aten::is_leaf",
    "aten::repeat_interleave.Tensor",
    "aten::linalg_matrix_rank.out_tol_tensor", "aten::linalg_pinv.out_rcond_tensor",
))  # fmt: skip
"""Overloads that rows and functions of the name do not stand for."""


# ---- methods and functions that are no rows


def _of_function(schema: FunctionSchema, short: str, outputs: list[Parameter]) -> Form | None:
    for function in _functions(short, schema):
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError):
            continue
        passing = _function_passing(parameters, schema, outputs)
        if passing is not None:
            return _form(schema, function, passing, outputs)
    return None


def _functions(short: str, schema: FunctionSchema) -> Iterator[Callable[..., Any]]:
    first = schema.arguments[0].type if schema.arguments else None
    if first == T.TENSOR:
        found = inspect.getattr_static(Tensor, short, None)
        if inspect.isfunction(found):
            yield found
        elif callable(getattr(found, "build", None)):
            yield getattr(Tensor, short)
    from flambeau.nn import functional

    found = getattr(functional, short, None)
    if inspect.isfunction(found):
        yield found


def _function_passing(parameters: Any, schema: FunctionSchema,
                      outputs: list[Parameter]) -> list[Passing] | None:  # fmt: skip
    kinds = {p.kind for p in parameters.values()}
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return None
    names = list(parameters)
    made, used = [], set()
    for index, parameter in enumerate(schema.arguments):
        if parameter in outputs:
            if "out" not in parameters:
                return None
            made.append(_output(parameter, outputs))
            continue
        name = names[0] if index == 0 and names else _known_name(parameter.name, parameters)
        if name is None or name not in parameters:
            if parameter.name not in DROPPED:
                return None
            made.append(_dropped(parameter))
            continue
        used.add(name)
        made.append(_function_argument(names.index(name), parameters[name], parameter))
    required = [n for n, p in parameters.items() if p.default is p.empty and n not in used
                and p.kind is not p.VAR_KEYWORD]  # fmt: skip
    return None if required else made


def _function_argument(place: int, found: inspect.Parameter, parameter: Parameter) -> Passing:
    default = REQUIRED if found.default is found.empty else found.default
    position = None if found.kind is found.KEYWORD_ONLY else place
    convert = CONVERSIONS.get(parameter.name) if without_none(parameter.type) == T.INT else None
    return Passing(found.name, position, convert, default)
