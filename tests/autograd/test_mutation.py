"""`allow_mutation_on_saved_tensors` with views that begin at another address than their base."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import flambeau as torch

WRITES: list[Callable[[torch.Tensor], object]] = [
    lambda y: y.sin_(),
    lambda y: y[1:].mul_(2),
    lambda y: y[2:].fill_(7),
    lambda y: y.__setitem__(slice(1, 3), 5.0),
    lambda y: torch.mul(torch.ones(3), 4, out=y),
]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("saved", [slice(None), slice(1, None), slice(2, 3)])
def test_backward_gets_values_from_before_the_write(write, saved) -> None:
    x = torch.tensor([0.5, 2.0, 3.0], requires_grad=True)
    (wanted,) = torch.autograd.grad((x[saved] ** 2).sum(), x)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        out = (y[saved] ** 2).sum()
        with torch.no_grad():
            write(y)
        (found,) = torch.autograd.grad(out, x)
    assert torch.equal(found, wanted)


def test_hooks_that_begin_or_end_regions_while_they_unpack_change_nothing() -> None:
    region = torch.autograd.graph.saved_tensors_hooks(
        lambda s: s, lambda s: other.__enter__() or region.__exit__() or s
    )
    other = torch.autograd.graph.saved_tensors_hooks(lambda s: s * 100, lambda s: s)
    x = torch.ones(2, requires_grad=True)
    with region:
        (x * x).sum().backward()
        y = x.exp()
    (slope,) = torch.autograd.grad((x * x).sum(), x)
    assert x.grad.tolist() == [2, 2]
    assert slope.tolist() == [2, 2]
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], x.detach().exp())
