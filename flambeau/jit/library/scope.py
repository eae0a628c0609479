"""What names mean in the programs of the library."""

from __future__ import annotations

import math
import typing
from collections.abc import Sequence
from functools import cache
from typing import Any

from flambeau.jit.frontend.python_values import attribute_sugar
from flambeau.jit.frontend.simple_value import BuiltinFunction, FunctionValue, SimpleValue
from flambeau.jit.frontend.sugar import SugaredValue, sugar_of
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import PYTHON_UNIT, Function, FunctionSchema, Parameter
from flambeau.jit.ir.graph import Graph
from flambeau.jit.ir.source import SourceRange
from flambeau.jit.library.reader import PLACES, definitions
from flambeau.jit.operators import table
from flambeau.jit.operators.matching import Argument, match_one

AS_LISTS = {"_single": 1, "_pair": 2, "_triple": 3, "_quadruple": 4}
"""Functions that make lists of sizes, and how long they are."""


class LibraryScope:
    """The names of a module of torch. `torch.x` is the operator of that name where there is one."""

    def __init__(self, place: str) -> None:
        self.places = dict.fromkeys((place, *PLACES))

    def value(self, name: str, graph: Graph, where: SourceRange) -> SugaredValue | None:
        """What a name means as a value."""
        if name == "torch":
            return Torch()
        if name in AS_LISTS:
            return AsList(AS_LISTS[name])
        if name in ("math", "warnings"):
            return _modules()[name]
        if name == "PackedSequence":
            from flambeau.jit.modules.class_values import NamedTupleClass

            return NamedTupleClass(_packed_sequence())
        for place in self.places:
            found = function_sugar(place, name)
            if found is not None:
                return found
        return exception(name, where)

    def type(self, name: str, where: SourceRange) -> T.Type | None:
        """The type that a name means; `Tensor` and the like are known anyway."""
        from flambeau.jit.modules.annotations import type_of_annotation

        if name == "PackedSequence":
            return _packed_sequence()
        note = getattr(typing, name, None)
        return None if note is None else type_of_annotation(note, default=None)


def _packed_sequence() -> T.TupleType:
    from flambeau.jit.modules.named_tuples import named_tuple_type
    from flambeau.nn.utils.rnn import PackedSequence

    return named_tuple_type(PackedSequence)


@cache
def _modules() -> dict[str, SugaredValue]:
    return {"math": _Names({n: f"aten::{n}" for n in dir(math)}, vars(math)),
            "warnings": _Names({"warn": "aten::warn"}, {})}  # fmt: skip


def exception(name: str, where: SourceRange) -> SugaredValue | None:
    """A class of exceptions."""
    import builtins

    found = getattr(builtins, name, None)
    return sugar_of(found, where) if isinstance(found, type) else None


class _Names(SugaredValue):
    """A module of Python with operators and numbers."""

    kind = "module"

    def __init__(self, operators: dict[str, str], values: dict[str, Any]) -> None:
        self.operators = operators
        self.values = values

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        value = self.values.get(name)
        if isinstance(value, float):
            return SimpleValue(graph.constant(value))
        return BuiltinFunction(self.operators[name])


class AsList(SugaredValue):
    """`_pair(x)`: one number twice, or the numbers that are there."""

    kind = "builtin"

    def __init__(self, length: int) -> None:
        self.schema = FunctionSchema(
            "sizes", "", (Parameter("x", T.ListType(T.INT), length=length),), ()
        )

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        with graph.at(where):
            args = [argument.in_graph(graph) for argument in args]
        match = match_one(self.schema, graph, where, args, kwargs)
        return SimpleValue(match.inputs[0])


class Torch(SugaredValue):
    """`torch` in the library: operators, and otherwise what users find there."""

    kind = "module"

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        import sys

        if table.overloads(f"aten::{name}"):
            return BuiltinFunction(f"aten::{name}")
        return attribute_sugar(getattr(sys.modules["flambeau"], name), where)


@cache
def functions(place: str, name: str) -> tuple[Function, ...]:
    """A function of the library, compiled when it is first used; one for each of its overloads."""
    found = definitions(place, name)
    if not found:
        return ()
    from flambeau.jit.modules.methods import function_from
    from flambeau.jit.modules.signatures import with_signature

    scope = LibraryScope(place)
    qualified = f"__torch__.{place}.{name}"
    *declared, implementation = found
    variants = [with_signature(implementation, d, name) for d in declared] or [implementation]
    return tuple(function_from(v, scope, qualified, PYTHON_UNIT) for v in variants)


def function_sugar(place: str, name: str) -> SugaredValue | None:
    """What a function of the library means; None if there is none of that name."""
    from flambeau.jit.library.dispatch import DISPATCHED, Dispatched

    row = DISPATCHED.get(f"{place}.{name}")
    if row is not None:
        return Dispatched(row, place)
    found = functions(place, name)
    return FunctionValue(*found) if found else None
