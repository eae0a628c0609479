"""Rules of elementwise operators, and of the integers of rounds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from flambeau._ops.table import index
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.jit.ir.function import REQUIRED, FunctionSchema
from flambeau.jit.operators.naming import rows_of
from flambeau.jit.optimise.batching.program import TENSORS, Call, Rule
from flambeau.jit.optimise.batching.rules import (
    ROW_MAJOR,
    RULES,
    plain_only,
    rank_of,
    rows_first,
    rule,
    tensor_of,
    whole,
)
from flambeau.jit.optimise.batching.values import Batched, NotBatchable, Rounds

# ---- elementwise


OTHERWISE = ("__and__", "__or__", "__xor__", "contiguous", "detach")
"""Operators of aten that compute element by element, and are methods here."""
ROWS = index.FACTS["elementwise"].split()
FURTHER = tuple(new.replace(".", "_") for new, name in index.ALIASES.items() if name in ROWS)


def takes_numbers(kind: str) -> bool:
    """Whether a number beside a tensor is to an operator like a tensor of the same type."""
    rows = rows_of(kind.removeprefix("aten::"))
    return any(op.kind == "pointwise" and op.numbers in ("all", "other") for op in rows)


@rule(*ROWS, *FURTHER, *OTHERWISE)
def pointwise(call: Call, **given: Any) -> Any:
    """Ranks of rounds are brought together; then all broadcasts as in one round."""
    if any(isinstance(value, Rounds) for value in given.values()):
        return _beside_numbers(call, given)
    operands = {name: given[name] for name in call.tensors}
    plain_only(*[value for name, value in given.items() if name not in operands])
    _check_format(given)
    _check_types(operands)
    return Batched(call.again(**_lined_up(operands)))


@rule("masked_fill")
def masked_fill(call: Call, self: Any, mask: Any, value: Any) -> Any:
    """The value is a number, or a tensor without dims, which a batch of them is not."""
    plain_only(value)
    return pointwise(call, self=self, mask=mask, value=value)


def _lined_up(operands: Mapping[str, Any]) -> dict[str, Any]:
    rank = max(map(rank_of, operands.values()), default=-1)
    if rank < 0:
        raise NotBatchable("an operator of other things than tensors")
    return {name: rows_first(value, rank) for name, value in operands.items()}


def _check_format(given: Mapping[str, Any]) -> None:
    if given.get("memory_format") not in ROW_MAJOR:
        raise NotBatchable("a memory format, which counts the dims of a round")


def _check_types(operands: Mapping[str, Any]) -> None:
    """Tensors without dims give way to others in promotion: in a batch they have one."""
    types = {whole(value)._data.dtype for value in operands.values() if rank_of(value) >= 0}
    if len(types) > 1 and 0 in map(rank_of, operands.values()):
        raise NotBatchable("types that are promoted by dims")


def _beside_numbers(call: Call, given: Mapping[str, Any]) -> Any:
    """Integers of the rounds as tensors of the type beside them, which a number would not change
    either.
    """
    schema = _tensor_form(call.schema) if takes_numbers(call.kind) else None
    if schema is None:
        raise NotBatchable("arithmetic of the index")
    names = [p.name for p in schema.arguments if p.type in TENSORS]
    dtype = _one_type([given[name] for name in names])
    operands = {name: _as_tensors(given[name], dtype) for name in names}
    for parameter in schema.arguments:
        standard = parameter.default in (REQUIRED, given[parameter.name])
        if parameter.name not in names and not standard:
            raise NotBatchable("factors beside the index")
    return Batched(_implementation(schema)(*(dict(given) | _lined_up(operands)).values()))


def _tensor_form(schema: FunctionSchema) -> FunctionSchema | None:
    """The overload that takes tensors where this one takes numbers."""
    from flambeau.jit.operators import table

    names = [p.name for p in schema.arguments]
    for overload in table.overloads(schema.name):
        tensors = sum(p.type in TENSORS for p in overload.arguments)
        if tensors == 2 and [p.name for p in overload.arguments] == names:  # noqa: PLR2004
            return overload
    return None


def _implementation(schema: FunctionSchema) -> Callable[..., Any]:
    from flambeau.jit.operators.calls import implementation

    return implementation(schema)


def _one_type(values: list[Any]) -> np.dtype[Any]:
    types = {whole(v)._data.dtype for v in values if isinstance(v, (Batched, Tensor))}
    if len(types) != 1:
        raise NotBatchable("arithmetic of the index")
    (dtype,) = types
    if dtype.name not in ("float32", "float64", "int64"):
        raise NotBatchable("the index beside another type")
    return dtype


def _as_tensors(value: Any, dtype: np.dtype[Any]) -> Any:
    return Batched(wrap(value.numbers.astype(dtype))) if isinstance(value, Rounds) else value


@rule("to", "type_as")
def to(call: Call, self: Any, **given: Any) -> Any:
    """Another type. A tensor that gives it does not take part: its dims are nobody's."""
    _check_format(given)
    given = {name: whole(value) for name, value in given.items()}
    if not isinstance(self, Batched):
        return call.again(**given)
    plain_only(*given.values())
    return Batched(call.again(self=self.tensor, **given))


# ---- integers of rounds


def _integer_rule(function: Callable[..., Any]) -> Rule:
    """Arithmetic of integers, or of what comes as tensors under the same name."""

    def apply(call: Call, **given: Any) -> Any:
        if call.tensors:
            return pointwise(call, **given)
        numbers = [v.numbers if isinstance(v, Rounds) else v for v in given.values()]
        if not all(map(_is_integer, numbers)):
            raise NotBatchable("arithmetic of the index")
        for number in numbers:
            if type(number) is int:
                Rounds(np.asarray(number))  # refuses large ones
        return Rounds(np.broadcast_to(function(*numbers), (call.rounds,)).astype(np.int64))

    return apply


def _is_integer(value: Any) -> bool:
    return isinstance(value, np.ndarray) or type(value) is int


for _name, _function in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul)):
    RULES[f"aten::{_name}"] = _integer_rule(_function)


def _checked(function: Callable[..., Any]) -> Rule:
    """Division by a number that is not 0, rounded down as in Python."""

    def divide(left: Any, right: Any) -> Any:
        if np.any(np.equal(right, 0)):
            raise ZeroDivisionError
        return function(left, right)

    return _integer_rule(divide)


RULES["aten::floordiv"] = _checked(operator.floordiv)
RULES["aten::remainder"] = _checked(operator.mod)
RULES["aten::neg"] = _integer_rule(operator.neg)
RULES["aten::__derive_index"] = _integer_rule(lambda index, start, step: start + index * step)


@rule("prim::dtype", "prim::device", "dim", "numel", "is_floating_point")
def question(call: Call, **given: Any) -> Any:
    """What is the same for all rounds: that of the first."""
    (value,) = given.values()
    return call.plain(tensor_of(value)[0])  # type: ignore[index]
