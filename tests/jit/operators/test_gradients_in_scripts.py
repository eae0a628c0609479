"""`torch.autograd.grad` and `backward` in scripts."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch


def slope(x: torch.Tensor, y: torch.Tensor):
    return torch.autograd.grad([y], [x])


def slopes(x: torch.Tensor, z: torch.Tensor):
    y = (x**3).sum()
    return torch.autograd.grad([y], [x, z], create_graph=True, allow_unused=True)


def filled(x: torch.Tensor):
    y = (x * 3).sum()
    torch.autograd.backward([y])
    return x.grad


def test_gradients_in_scripts() -> None:
    x, z = [torch.ones(2, requires_grad=True) for _ in range(2)]
    y = (x * x).sum()
    script: Any = torch.jit.script(slope)
    assert [grad.tolist() for grad in script(x, y)] == [[2, 2]]
    with pytest.raises(RuntimeError, match="Specify retain_graph=True"):
        script(x, y)
    first, unused = torch.jit.script(slopes)(x, z)
    assert first.tolist() == [3, 3] and first.requires_grad and unused is None
    assert torch.jit.script(filled)(x).tolist() == [3, 3]
