"""Calls an operator that has several names by one of them."""

from __future__ import annotations

import itertools

from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Graph, Node
from flambeau.jit.passes.schemas import fitting_schema

IN_PLACE_TOO = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "clip": "clamp", "divide": "div",
    "fix": "trunc", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
    "multiply": "mul", "negative": "neg", "not_equal": "ne", "subtract": "sub",
    "swapaxes": "transpose", "swapdims": "transpose", "true_divide": "div",
}  # fmt: skip
SPECIAL = {
    "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp2": "exp2", "expm1": "expm1",
    "expit": "sigmoid", "gammainc": "igamma", "gammaincc": "igammac", "gammaln": "lgamma",
    "i0": "i0", "digamma": "digamma", "log1p": "log1p", "log_softmax": "log_softmax",
    "logit": "logit", "logsumexp": "logsumexp", "multigammaln": "mvlgamma",
    "polygamma": "polygamma", "psi": "digamma", "round": "round", "sinc": "sinc",
    "softmax": "softmax", "xlogy": "xlogy",
}  # fmt: skip
CANONICAL = {
    **IN_PLACE_TOO,
    **{f"{name}_": f"{canonical}_" for name, canonical in IN_PLACE_TOO.items()},
    **{f"special_{name}": canonical for name, canonical in SPECIAL.items()},
    "adjoint": "mH", "concat": "cat", "concatenate": "cat", "det": "linalg_det", "ger": "outer",
    "inverse": "linalg_inv", "linalg_matmul": "matmul", "matrix_exp": "linalg_matrix_exp",
    "matrix_power": "linalg_matrix_power", "moveaxis": "movedim",
    "orgqr": "linalg_householder_product", "row_stack": "vstack",
}  # fmt: skip
"""Names of aten, and what compiled programs call them."""


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
    if name in CANONICAL:
        node.kind = f"aten::{CANONICAL[name]}"
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
