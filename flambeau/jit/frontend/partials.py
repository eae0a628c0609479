"""`functools.partial` objects that programs reach through names: calls with arguments put in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from flambeau.jit.frontend.constants import constant_of
from flambeau.jit.frontend.sugar import SugaredValue, sugar_of
from flambeau.jit.ir.graph import Graph
from flambeau.jit.ir.source import SourceRange
from flambeau.jit.operators.matching import Argument


class Partial(SugaredValue):
    """A function some of whose arguments are known; names given in the call go first."""

    kind = "partial"

    def __init__(self, value: partial[Any]) -> None:
        self.value = value

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        first = [_argument(value, graph, where) for value in self.value.args]
        given = {argument.name for argument in kwargs}
        known = [_argument(value, graph, where, name)
                 for name, value in self.value.keywords.items() if name not in given]  # fmt: skip
        function = sugar_of(self.value.func, where)
        return function.call(graph, where, [*first, *args], [*known, *kwargs], n_binders)


def _argument(value: Any, graph: Graph, where: SourceRange, name: str | None = None) -> Argument:
    meaning = constant_of(value) or sugar_of(value, where)
    return Argument(meaning.as_value(graph, where), where, name)
