"""Operators that no derivative is defined for: their results require grad, as their inputs do, and
a backward pass that gets there raises. A gradient that is silently absent would be worse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core import modes
from flambeau._ops.table.op import Op
from flambeau._ops.table.outputs import tensors_in
from flambeau.autograd.engine import wanted_edges
from flambeau.autograd.graph import Node, output_node
from flambeau.autograd.history import Nowhere, bump, edge_of, rebase

FALLBACK = "derivative for aten::{name} is not implemented"
"""What torch says of operators that it has no formula for."""
WRITING_LISTS = "derivative for {name} is not implemented"
"""The same of those that write to all tensors of a list."""
DECLARED = "the derivative for '{name}' is not implemented."
"""What torch says where a formula would be, and why it is not."""


class NotDerived(Node):
    """The history of a result that no gradient gets past."""

    __slots__ = ("error",)
    title = "NotImplemented"
    runs_on_nothing = True

    def __init__(self, edges: list[Any], error: tuple[type[Exception], str]) -> None:
        super().__init__(*edges)
        self.error = error

    def apply(self, grad: Any) -> tuple[Any, ...]:
        kind, text = self.error
        if kind is NotImplementedError and all(map(leads_nowhere, wanted_edges(self))):
            return (None,) * len(self.edges)  # the formula would not be asked for
        raise kind(text)


def leads_nowhere(edge: Any) -> bool:
    """Whether nobody gets what is sent to an edge."""
    return edge is None or type(edge) is Nowhere


_TITLED: dict[str, type[NotDerived]] = {}


def titled(title: str) -> type[NotDerived]:
    """The class of nodes of that name."""
    if title not in _TITLED:
        _TITLED[title] = type(title, (NotDerived,), {"__slots__": (), "title": title})
    return _TITLED[title]


def recorded(results: Any, inputs: Any, name: str, title: str = "") -> Any:
    """The results of an operator, one tensor or several, with a history without formula.

    `title`: the node's name, if torch has a node of its own for the operator.
    """
    if modes.grad.enabled:
        _attach(titled(title or NotDerived.title), results, inputs, _error(name, bool(title)))
    return results


def _error(name: str, declared: bool = False, words: str = FALLBACK) -> tuple[type[Exception], str]:
    """What a backward pass raises that gets to an operator without a formula."""
    if declared:
        return NotImplementedError, DECLARED.format(name=name)
    return RuntimeError, words.format(name=name)


def _attach(made: type[NotDerived], results: Any, inputs: Any,
            error: tuple[type[Exception], str]) -> None:  # fmt: skip
    edges = [edge for edge in map(edge_of, tensors_in(inputs)) if edge is not None]
    if not edges:
        return
    node = made(edges, error)
    if not isinstance(results, (tuple, list)):
        results._node, results._requires_grad = node, True
        return
    node.outputs = len(results)
    for index, result in enumerate(results):
        if result._data.dtype.kind in "fcVW":
            result._node, result._requires_grad = output_node(node, index), True


def stop(target: Any, inputs: Any, name: str, words: str = FALLBACK) -> None:
    """Give a tensor that has been written to a history without formula, if an input has one."""
    edges = list(map(edge_of, tensors_in(inputs)))
    if words == FALLBACK:  # whose nodes have no other edges in torch
        edges = [edge for edge in edges if edge is not None]
    if any(edge is not None for edge in edges) and target._data.dtype.kind in "fcVW":
        rebase(target, titled(NotDerived.title)(edges, _error(name, words=words)))


def recorder(op: Op, *, inplace: bool) -> Callable[..., None]:
    """What records the calls of a row: `record(*arguments, *results)`."""
    count = len(op.schema.arguments)
    made = titled(NotDerived.title)

    def record(*values: Any) -> None:
        inputs, results = values[:count], values[count:]
        _attach(made, results[0] if len(results) == 1 else results, inputs, error)

    def record_inplace(*values: Any) -> None:
        target = values[-1]
        edges = [edge_of(tensor) for tensor in (target, *tensors_in(values[1:count]))]
        bump(target)
        rebase(target, made([edge for edge in edges if edge is not None], error))

    error = _error(f"{op.name}_" if inplace else op.name)
    return record_inplace if inplace else record
