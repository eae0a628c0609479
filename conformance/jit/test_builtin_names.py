"""Functions that are operators in PyTorch's scripts are operators in ours, wherever looked up."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch as reference

import flambeau
from flambeau.jit.frontend.builtins import builtin_name
from flambeau.jit.operators import table

SPACES = ("", "nn.functional")
INTERNAL = frozenset(("_lu_with_info",))
"""Another function in Python than the operator of the name."""


def _builtins(space: str) -> list[str]:
    """The names in a namespace that PyTorch's compiler takes for operators that we have."""
    module = reference.nn.functional if space else reference
    own = flambeau.nn.functional if space else flambeau
    found = []
    for name in sorted(dir(module)):
        known = reference.jit._builtins._find_builtin(getattr(module, name))
        if known and table.overloads(known) and name not in INTERNAL and hasattr(own, name):
            found.append(name)
    return found


@pytest.mark.parametrize("space", SPACES)
def test_operators_of_scripts(space: str) -> None:
    own = flambeau.nn.functional if space else flambeau
    missed = [name for name in _builtins(space) if builtin_name(getattr(own, name)) is None]
    assert not missed


def test_functions_of_two_places_are_operators_in_any_order() -> None:
    for name in ("layer_norm", "rms_norm"):
        for owner in (flambeau.nn.functional, flambeau, flambeau.nn.functional):
            assert builtin_name(getattr(owner, name)) in (f"aten::{name}", None)
        assert builtin_name(getattr(flambeau, name)) == f"aten::{name}"


PROGRAM = """
import flambeau as torch
unit = torch.jit.CompilationUnit('''
def f(x: Tensor, w: Tensor):
    return torch.nn.functional.softplus(torch.conv2d(x, w))
''')
print(unit.f(torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 2, 2)).shape)
"""


def test_a_function_of_two_places_is_one_wherever_it_is_first_looked_up() -> None:
    """`torch.conv2d`, before anybody asked for `torch.nn.functional.conv2d`."""
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.stdout == "torch.Size([1, 1, 1, 1])\n", done.stderr
