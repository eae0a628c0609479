"""Nodes of a graph for numbers that are symbols: sizes of tensors, and what is computed of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau._tensor.symbolic_arrays import layout_of
from flambeau._tensor.symbolic_numbers import expression_of, is_symbolic
from flambeau._tensor.tensor import constructors

if TYPE_CHECKING:
    from flambeau.fx.node import Node


class SymbolNodes:
    """Which node gives a symbolic number. One is made when it is first needed.

    Args:
        tracer: what makes nodes.
    """

    def __init__(self, tracer: Any) -> None:
        self.tracer = tracer
        self._made: dict[Any, Node] = {}
        self._places: dict[Any, tuple[str, Node, Any]] = {}
        self._kept: list[Any] = []

    def note(self, tensor: Any, node: Node) -> None:
        """A node gives a tensor, whose sizes may be asked for from now on."""
        layout = layout_of(tensor._data)
        if layout is None:
            return
        for word, numbers in zip(("sym_size", "sym_stride"), layout[:2], strict=True):
            for dim, number in enumerate(numbers):
                self._note(number, (word, node, dim))
        self._note(layout.offset, ("sym_storage_offset", node, None))

    def _note(self, number: Any, place: tuple[str, Node, Any]) -> None:
        if is_symbolic(number):
            self._places.setdefault(number.node.expr, place)

    def keep(self, number: Any, node: Node) -> None:
        """A node gives a number."""
        node.meta["val"] = number
        self._made.setdefault(number.node.expr, node)

    def node_of(self, number: Any) -> Any:
        """The node that gives a number; a plain number where nothing is left open."""
        expr = expression_of(number)
        if expr.is_number:
            return number.node.pytype(expr)
        if expr in self._made:
            return self._made[expr]
        if expr in self._places and not (number.node.origin and not expr.is_Symbol):
            return self._asked(number, *self._places[expr])
        if number.node.origin is not None:
            function, args = number.node.origin
            node = self._call(number, function, self.tracer.create_arg(args))
        elif expr in self._places:
            return self._asked(number, *self._places[expr])
        else:
            return self._computed(number.node.shape_env, expr, number.node.pytype)
        self._made[expr] = node
        return node

    def _asked(self, number: Any, word: str, node: Node, dim: Any) -> Node:
        packet = constructors["operator_of_aten"](word)
        overload = packet.default if dim is None else packet.int
        args = (node,) if dim is None else (node, dim)
        found = self._call(number, overload, args, f"{word}_int" if dim is not None else word)
        self._made[expression_of(number)] = found
        return found

    def _call(self, number: Any, function: Any, args: Any, name: str | None = None) -> Node:
        node: Node = self.tracer.create_node("call_function", function, args, {}, name=name)
        node.meta["val"] = number
        return node

    def _computed(self, env: Any, expr: Any, pytype: type) -> Any:
        """Nodes for an expression whose history is not known, from the symbols on."""
        from flambeau._tensor.symbolic_functions import evaluate
        from flambeau._tensor.symbolic_numbers import made

        symbols = {symbol: made(env, symbol, int) for symbol in expr.free_symbols}
        return self.node_of(evaluate(expr, symbols))
