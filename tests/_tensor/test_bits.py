"""Conjugate and negative views, where the order in which things are loaded matters."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import flambeau as torch
{before}
z = torch.arange(6.0)
turned = torch._neg_view(z)
part = turned[1:3]
assert part.is_neg() and turned[2].is_neg() and turned[None].is_neg()
turned[0] = 5
part.copy_(torch.tensor([7.0, 8.0]))
assert z.tolist() == [-5, -7, -8, 3, 4, 5], z
w = torch.complex(z, z)
product = w.conj()[:2] @ w[:2]
assert torch.equal(product, w[:2].resolve_conj().conj_physical() @ w[:2])
square = w[:4].reshape(2, 2)
assert torch.equal(square.conj().T @ square, square.conj_physical().T @ square)
assert torch.equal(square @ square.conj().T, square @ square.conj_physical().T)
"""
BEFORE = {
    "nothing": "",
    "a class": "class Own(torch.Tensor):\n    pass",
    "a mode": "from flambeau.overrides import TorchFunctionMode\n"
    "class Mode(TorchFunctionMode):\n"
    "    def __torch_function__(self, function, types, args=(), kwargs=None):\n"
    "        return function(*args, **kwargs or {})\n"
    "Mode().__enter__()",
}


@pytest.mark.parametrize("before", BEFORE)
def test_views_are_views_whatever_was_there_before(before: str) -> None:
    """Classes and modes that take functions over exchange the code of those that are loaded
    later."""
    text = PROGRAM.format(before=BEFORE[before])
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
