"""Calls an operator that has several names by one of them."""

from __future__ import annotations

import itertools
from functools import cache

from flambeau._ops.table import index
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Graph, Node
from flambeau.jit.operators.naming import public_names
from flambeau.jit.passes.schemas import fitting_schema

OF_ATEN = {
    "adjoint": "mH", "det": "linalg_det", "inverse": "linalg_inv",
    "linalg_matrix_power": "", "matrix_exp": "linalg_matrix_exp",
    "matrix_power": "linalg_matrix_power", "moveaxis": "movedim",
    "orgqr": "linalg_householder_product", "special_log_softmax": "log_softmax",
    "special_logsumexp": "logsumexp", "special_softmax": "softmax",
}  # fmt: skip
"""Further names that are one operator in aten, and rows of their own here, or the other way."""


@cache
def canonical(name: str) -> str:
    """What compiled programs call an operator of aten: `mul` for `multiply`."""
    plain = name.removesuffix("_")
    found = OF_ATEN.get(plain)
    if found is None:
        found = next((index.ALIASES[public] for public in public_names(plain)
                      if public in index.ALIASES), "")  # fmt: skip
    return found.replace(".", "_") + name[len(plain) :] if found else name


def normalise_names(graph: Graph) -> None:
    """Give operators their canonical names: `multiply` is `mul`."""
    for node in graph.walk():
        if node.kind.startswith("aten::"):
            _normalise(node)


_warnings = itertools.count()


def number_warnings(graph: Graph) -> None:
    """Give each place of the program that warns a number, so that it can do so once."""
    for node in graph.walk():
        if node.kind == "aten::warn" and "warn_id" not in node.attributes:
            node.attributes["warn_id"] = next(_warnings)


def _normalise(node: Node) -> None:
    name = node.kind.removeprefix("aten::")
    known = canonical(name)
    if known != name:
        node.kind = f"aten::{known}"
    elif name == "rsub" and node.inputs[1].type.is_subtype_of(T.TENSOR):
        _swap_inputs(node)
        node.kind = "aten::sub"
    elif name in ("__is__", "__isnot__") and all(v.type == T.BOOL for v in node.inputs):
        node.kind = "aten::eq" if name == "__is__" else "aten::ne"
    else:
        return
    node.schema = fitting_schema(node)


def _swap_inputs(node: Node) -> None:
    first, second = node.inputs[:2]
    node.set_input(0, second)
    node.set_input(1, first)
