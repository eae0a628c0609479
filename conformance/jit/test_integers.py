"""Ints of programs have 64 bits: sums, products and powers wrap as PyTorch's."""

from __future__ import annotations

import random

import pytest
import torch

import flambeau

pytestmark = pytest.mark.filterwarnings("ignore")
OPERATIONS = (
    "a + b", "a - b", "a * b", "a * a * b", "-a", "abs(a)", "a // b", "a % b", "a << (b % 64)",
    "a >> (b % 64)", "a ^ b", "a & b", "a | b", "max(a, b)",
    "float(a) * b", "int(float(a))", "divmod(a, b)[0]", "a * 3 < b",
    "[a * b][0]", "str(a * b)",
)  # fmt: skip
EDGES = (0, 1, -1, 2, 3, -7, 2**31, 2**32 - 1, 2**62, 2**63 - 1, -(2**63) + 1, -(2**63))
chosen = random.Random(8)
PAIRS = [(a, b) for a in EDGES for b in EDGES] + [
    (chosen.getrandbits(64) - 2**63, chosen.getrandbits(chosen.randint(1, 63))) for _ in range(60)
]


def shown(function: object, a: int, b: int) -> object:
    try:
        found = function(a, b)  # type: ignore[operator]
    except RuntimeError as error:
        return str(error).splitlines()[-1]
    return found.tolist() if hasattr(found, "tolist") else repr(found)


@pytest.mark.parametrize("expression", OPERATIONS)
def test_wrapping(expression: str) -> None:
    """All pairs of extremes, and random ones; what C++ leaves open is left out."""
    text = f"def f(a: int, b: int):\n    return {expression}\n"
    theirs = torch.jit.CompilationUnit(text).f
    mine = flambeau.jit.CompilationUnit(text).f
    for a, b in PAIRS:
        divides = any(sign in expression for sign in ("//", "%", "divmod"))
        shifts = "<<" in expression or ">>" in expression
        # 1 % 0 and -2**63 // -1 end the process; C++ adds the divisor, which may overflow
        if divides and not shifts and (b in (0, -1) or abs(b) >= 2**61):
            continue
        assert shown(mine, a, b) == shown(theirs, a, b), (a, b)


def test_growth() -> None:
    """Squares in a loop stay small."""
    text = "def f(x: int, n: int):\n    for i in range(n):\n        x = x * x + x\n    return x\n"
    theirs, mine = (library.jit.CompilationUnit(text).f for library in (torch, flambeau))
    for n in (1, 5, 70, 5000):
        assert mine(3, n) == theirs(3, n)
