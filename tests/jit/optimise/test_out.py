"""Operators that write their results to `out=` keep their place among what reads and writes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import flambeau as torch
from flambeau import Tensor
from flambeau.jit.operators import table
from flambeau.jit.optimise.fusion.groups import COMPUTING

ARGUMENTS = {
    "pow": "2.0", "rms_norm": "[4]", "clamp": "-0.5, 0.5", "clamp_min": "-0.5", "clamp_max": "0.5",
    "rsub": "y", "lerp": "y, 0.5", "addcmul": "y, y", "addcdiv": "y, y", "softmax": "1",
    "log_softmax": "1", "mean": "1, True", "sum": "1, True", "masked_fill": "y > 0, 2.0",
}  # fmt: skip
UNLIKE = ("where", "native_layer_norm")
"""Other first arguments, other results."""
BINARY = "add mul sub div maximum minimum eq ne lt le gt ge logical_and logical_or".split()


def _calls() -> Iterator[tuple[str, str]]:
    """Operators that groups know and that take `out=`, as functions of x with a result of x's or
    a sum's shape."""
    for kind in sorted(COMPUTING):
        name = kind.removeprefix("aten::")
        takes_out = any(
            p.keyword_only and p.written for s in table.overloads(kind) for p in s.arguments
        )
        if takes_out and hasattr(torch, name) and name not in UNLIKE:
            more = ARGUMENTS.get(name, "y" if name in BINARY else "")
            yield name, f"torch.{name}({', '.join(filter(None, ('x', more)))}"


CALLS = dict(_calls())


def _scripted(body: str):
    source = f"def f(x: Tensor, y: Tensor):\n    {body}\n"
    return torch.jit.CompilationUnit(source).f


def _runs(function, *shapes: tuple[int, ...]) -> None:
    """Both forms give the same, and leave the same in their arguments."""
    torch.manual_seed(1)
    given = [torch.randn(shape) for shape in shapes]
    plain, fast = [t.clone() for t in given], [t.clone() for t in given]
    with torch.jit.optimized_execution(False):
        wanted = function(*plain)
    found = function(*fast)
    for one, other in zip((*found, *fast), (*wanted, *plain), strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)


@pytest.mark.parametrize("name", CALLS)
def test_what_reads_the_target_waits(name: str) -> None:
    """The target is read by what no group computes, before and after."""
    call = CALLS[name]
    result = f"o = {call})\n    before = o.flip(0)\n    {call}, out=o)\n    "
    _runs(_scripted(f"{result}after = o.flip(0)\n    return before, after, o"), (3, 4), (3, 4))
    second = f"o = {call})\n    x = x + 1\n    z = o * 2\n    {call}, out=o)\n    z = z + o.flip(0)"
    _runs(_scripted(f"{second}\n    return z, o"), (3, 4), (3, 4))


def test_a_target_that_is_an_argument() -> None:
    _runs(_scripted("torch.cos(x, out=x)\n    return x.median(), x.flatten()"), (2, 2), (1,))
    _runs(_scripted("torch.add(y, x, out=y)\n    return (y.clone(), x * 1)"), (2, 2), (2, 2))


@pytest.mark.parametrize("call", ["add(z, y, out=y)", "clamp(z, 0.0, out=y)"])
def test_convolutions_do_not_take_targets_with_them(call: str) -> None:
    body = "z = torch.conv2d(x, x.narrow(2, 0, 2).narrow(3, 0, 2))\n    "
    _runs(_scripted(f"{body}torch.{call}\n    return y, y.flip(0)"), (1, 1, 4, 4), (1, 1, 3, 3))


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(1, 2, 2)
        self.factor = torch.nn.Parameter(torch.full((2, 1, 1), 3.0))

    def forward(self, x: Tensor, y: Tensor):
        torch.mul(self.convolution(x), self.factor, out=y)
        return y.clone(), y


def test_frozen_layers_do_not_take_targets_with_them() -> None:
    module = Scaled().eval().requires_grad_(False)
    x, y = torch.randn(1, 1, 4, 4), torch.zeros(1, 2, 3, 3)
    with torch.no_grad():
        wanted = module(x, y.clone())
        frozen = torch.jit.freeze(torch.jit.script(module))
        frozen = torch.jit.optimize_for_inference(frozen)
        found = frozen(x, y)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(y, wanted[1])
