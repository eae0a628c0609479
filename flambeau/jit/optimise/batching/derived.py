"""Rules that follow from rows: how `vmap` works on a whole batch is how all rounds are computed.

A row says it once, by its kind or its `batch=` (`_ops/transforms/batch_rules.py`): along which dims
of a batch it goes, what becomes of sizes, where the examples' own number is one more index. What
differs from round to round is a tensor of examples there; the row's own function is called once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flambeau._ops.table import binder
from flambeau._ops.table.op import BY_NAME, Op
from flambeau._ops.table.outputs import tensors_in
from flambeau._ops.table.schema import REQUIRED
from flambeau._ops.transforms import batch_rules, batched_call, batching
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.batches import Batch
from flambeau.jit.ir.function import FunctionSchema
from flambeau.jit.operators import rows
from flambeau.jit.operators.forms import Passing
from flambeau.jit.optimise.batching.rules import plain_only
from flambeau.jit.optimise.batching.values import Batched, NotBatchable, Rounds, depends_on_round

KINDS = ("dims", "new dim")
"""The rules of rows of one tensor, or of one list of them, that hold for loops, too."""


class Derived:
    """The rule of one overload: that of the row that the overload is."""

    def __init__(self, op: Op, passing: Mapping[str, Passing]) -> None:
        self.op = op
        self.passing = passing  # by the names of the overload's parameters

    def __call__(self, call: Any, /, **given: Any) -> Any:
        """What all rounds give."""
        named = {}
        for name, value in given.items():
            passing = self.passing[name]
            if passing.dropped:
                if value != passing.default:
                    raise NotBatchable("an argument that the row has not")
            elif passing.convert is None:
                named[passing.name] = value
            else:
                plain_only(value)
                named[passing.name] = passing.convert(value)
        values = [named.get(binder.python_name(self.op, argument), argument.default)
                  for argument in self.op.schema.arguments]  # fmt: skip
        if any(value is REQUIRED for value in values):
            raise NotBatchable("an overload that lacks what the row needs")
        return of_rounds(self.op, call.rounds, values)


def of_row(name: str, rounds: int, *values: Any) -> Any:
    """What the one row of a name makes of all rounds."""
    (op,) = BY_NAME[name]
    return of_rounds(op, rounds, values)


def of_rounds(op: Op, rounds: int, values: Sequence[Any]) -> Any:
    """What a row makes of arguments, in its own order, some of which depend on the round."""
    level, function = Batch(rounds), rows.row_function(op)
    stands = tuple([_standing(level, value) for value in values])
    arguments = batch_rules.arguments_of(batched_call.Call(level, op, function, stands))
    if arguments is None:
        raise NotBatchable("a row that goes through a batch one by one")
    positional, keywords = [], {}
    for argument, value in zip(op.schema.arguments, arguments, strict=True):
        if argument.keyword_only:
            keywords[binder.python_name(op, argument)] = value
        else:
            positional.append(value)
    return _as_batched(function(*positional, **keywords))


def _standing(level: Batch, value: Any) -> Any:
    """What stands for an argument of the rounds: for tensors of all rounds, one of an example."""
    if isinstance(value, Batched):
        return level.standing_for(value.tensor)
    if isinstance(value, Rounds):
        raise NotBatchable("an argument that depends on the round")
    if not (isinstance(value, (list, tuple)) and depends_on_round(value)):
        return value
    return [_standing(level, item) for item in value]


def _as_batched(result: Any) -> Any:
    if isinstance(result, Tensor):
        return Batched(result)
    if not isinstance(result, (list, tuple)) or len(tensors_in(result)) != len(result):
        raise NotBatchable("an operator that gives other things than tensors")
    return [Batched(one) for one in result]


_rules: dict[str, Derived | None] = {}


def rule_for(schema: FunctionSchema) -> Derived | None:
    """The rule that follows from the row of an overload, or None."""
    name = schema.full_name
    if name not in _rules:
        _rules[name] = _found(schema)
    return _rules[name]


def _found(schema: FunctionSchema) -> Derived | None:
    if any(parameter.written for parameter in schema.arguments):
        return None
    names = [parameter.name for parameter in schema.arguments]
    found = rows.row_of(schema)
    if found is not None:
        op, passing = found
        return Derived(op, dict(zip(names, passing, strict=True))) if _holds(op, schema) else None
    return None


def _holds(op: Op, schema: FunctionSchema) -> bool:
    """Whether a row's rule is that of rounds. A round knows the steps of its own memory only, and
    sizes may be of other ranks than operands; composites that make views do so of all rounds."""
    if batch_rules.kind_of(op) not in KINDS:
        return False
    if batching.is_in_parts(op) and not (op.batch is None and _is_view(schema)):
        return False
    names = {argument.name for argument in op.schema.arguments}
    if sum(argument.is_tensor for argument in op.schema.arguments) != 1:
        return False
    return "stride" not in names and (op.kind == "view" or not names & batch_rules.SIZES)


def _is_view(schema: FunctionSchema) -> bool:
    return any(result.alias or "(a" in str(result.type) for result in schema.returns)
