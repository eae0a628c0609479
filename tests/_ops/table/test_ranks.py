"""The order of handlers does not depend on what a program used first."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import flambeau as torch
from flambeau.utils._python_dispatch import TorchDispatchMode

class Logged(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        seen.append(str(func))
        return func(*args, **(kwargs or {}))

def vmap():
    return torch.func.vmap(lambda x: (x * 2).sum() + torch.zeros(()))(torch.ones(3, 2))

def jvp():
    return torch.func.jvp(lambda x: x.sin(), (torch.zeros(2),), (torch.ones(2),))[1]

def mode():
    with Logged():
        return torch.ones(2).exp()

def meta():
    return torch.ones(2, device="meta") + 1

def cast():
    with torch.autocast("cpu"):
        return torch.ones(2, 2) @ torch.ones(2, 2)

seen = []
for name in sys.argv[1:]:
    globals()[name]()
for function in (vmap, jvp, cast):
    seen.clear()
    with Logged():
        result = function()
    print(result.dtype, result.tolist(), seen)
"""


def printed(*first: str) -> str:
    command = [sys.executable, "-c", PROGRAM, *first]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    "first", [("vmap", "jvp", "cast"), ("meta", "mode", "jvp"), ("mode", "cast", "meta")]
)
def test_whatever_came_first(first: tuple[str, ...]) -> None:
    of_vmap, of_jvp, of_cast = printed(*first).splitlines()
    assert of_vmap.startswith("torch.float32 [4.0, 4.0, 4.0]")
    assert "'aten.sum.dim_IntList'" in of_vmap  # an operator on the whole batch
    assert of_jvp.startswith("torch.float32 [1.0, 1.0]")
    assert "'aten.cos.default'" in of_jvp  # what the tangent needs is seen, too
    assert of_cast.startswith("torch.bfloat16")
