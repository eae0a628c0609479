"""Numbers beside tensors: the node's name and its edges, for numbers and tensors on either side."""

from __future__ import annotations

from typing import Any

import pytest
import torch as reference

import flambeau

FUNCTIONS = (
    "add", "sub", "mul", "div", "rsub", "fmod", "remainder", "xlogy", "copysign", "float_power",
    "pow", "true_divide", "special.xlogy", "special.xlog1py", "special.zeta", "atan2", "hypot",
    "maximum", "minimum", "fmax", "fmin", "logaddexp", "ldexp", "heaviside", "lerp",
)  # fmt: skip
OPERATORS = (
    "x + o", "o + x", "x - o", "o - x", "x * o", "o * x", "x / o", "o / x", "x % o", "x ** o",
    "o ** x",
)  # fmt: skip
METHODS = (
    "add_", "sub_", "mul_", "div_", "fmod_", "remainder_", "xlogy_", "copysign_", "pow_", "eq_",
    "ne_", "lt_", "le_", "gt_", "ge_", "atan2_", "asinh_", "acosh_", "atanh_",
)  # fmt: skip
TEXTS = (
    *[f"t.{name}({given})" for name in FUNCTIONS for given in ("x, o", "o, x")],
    *OPERATORS,
    *[f"(x * 1).{name}({'' if name.endswith('h_') else 'o'})" for name in METHODS],
)


@pytest.mark.parametrize("text", TEXTS)
def test_nodes(text: str) -> None:
    """The same node and edges beside numbers, tensors, and tensors that learn."""
    if text in ("t.remainder(o, x)", "t.special.zeta(o, x)"):
        pytest.skip("PyTorch has no gradient of one operand")
    for other in (2, 2.5, True, "tensor", "learning", "number"):
        assert _seen(flambeau, text, other) == _seen(reference, text, other), (text, other)


def _seen(t: Any, text: str, other: Any) -> Any:
    """The node's name with those behind its edges; the class of an error."""
    x = t.tensor([[0.3, 0.6]], requires_grad=True)
    o = other
    if other == "number":
        o = t.tensor(0.5)
    elif isinstance(other, str):
        o = t.tensor([[0.4, 0.2]], requires_grad=other == "learning")
    try:
        node = eval(text, {"t": t, "x": x, "o": o}).grad_fn
    except (TypeError, RuntimeError) as error:
        return type(error).__name__
    if node is None:
        return None
    return node.name(), [(edge and edge.name(), number) for edge, number in node.next_functions]
