"""Functions with a flag that says how many tensors they return: `unique(x, return_counts=True)`.

The flag has to be known when the program is compiled: it chooses one of two functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir.graph import Graph, Value
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.operators.matching import Argument


@dataclass(frozen=True)
class Row:
    """A flag: its name, its place among the arguments, and the functions for True and False."""

    flag: str
    index: int
    if_true: str
    if_false: str


def _rows() -> dict[str, Row]:
    found = {}
    inverse, counts = "return_inverse", "return_counts"
    for name, prefix, index in (("unique", "", 2), ("unique_consecutive", "_consecutive", 1)):
        yes, no = f"{prefix}_return_inverse_true", f"{prefix}_return_inverse_false"
        found[f"torch.functional.{name}"] = Row(inverse, index, yes, no)
        both = (f"{prefix}_return_inverse_and_counts", f"{prefix}_return_inverse")
        found[f"torch.functional.{yes}"] = Row(counts, index + 1, *both)
        rest = (f"{prefix}_return_counts", f"{prefix}_return_output")
        found[f"torch.functional.{no}"] = Row(counts, index + 1, *rest)
    found["torch.functional.lu"] = Row("get_infos", 2, "_lu_with_infos", "_lu_no_infos")
    return found


DISPATCHED = _rows()
"""The functions of the library that are chosen by a flag."""


class Dispatched(SugaredValue):
    """A function that stands for one of two."""

    kind = "boolean dispatch"

    def __init__(self, row: Row, place: str) -> None:
        self.row = row
        self.place = place

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        from flambeau.jit.library.scope import function_sugar

        given = next((k for k in kwargs if k.name == self.row.flag), None)
        if given is None and self.row.index < len(args):
            given = args[self.row.index]
        chosen = self.row.if_true if _known(given, where) else self.row.if_false
        function = function_sugar(self.place, chosen)
        assert function is not None
        return function.call(graph, where, args, kwargs, n_binders)


def _known(given: Argument | None, where: SourceRange) -> bool:
    if given is None:
        return False
    value = given.value
    if isinstance(value, Value):
        if not value.is_constant:
            raise ScriptError("argument for boolean dispatch was not constant", where)
        value = value.constant
    return bool(value)
