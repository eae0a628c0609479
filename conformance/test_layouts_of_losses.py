"""How losses of elements and their gradients lie in memory, for inputs that are not row-major."""

from __future__ import annotations

from typing import Any

import pytest
import torch as reference

import flambeau

LOSSES = ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "soft_margin_loss",
          "poisson_nll_loss", "hinge_embedding_loss", "binary_cross_entropy_with_logits",
          "binary_cross_entropy"]  # fmt: skip
LAYOUTS = [(0, 1, 2), (0, 2, 1), (2, 0, 1)]
"""The dims in the order in which they lie in memory."""


def _laid_out(numbers: Any, dims: tuple[int, ...]) -> Any:
    back = [dims.index(dim) for dim in range(len(dims))]
    return numbers.permute(dims).contiguous().permute(back)


def _strides(t: Any, name: str, layouts: tuple[tuple[int, ...], ...], reduction: str) -> Any:
    low = 0.1 if name == "binary_cross_entropy" else -1.0
    numbers = t.linspace(low, 0.9, 24).reshape(2, 3, 4)
    input, target = (_laid_out(numbers, dims) for dims in layouts)
    input.requires_grad_()
    loss = getattr(t.nn.functional, name)(input, target, reduction=reduction)
    (grad,) = t.autograd.grad(loss, input, t.ones_like(loss))
    return loss.stride(), grad.stride()


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("target", LAYOUTS)
@pytest.mark.parametrize("input", LAYOUTS)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.filterwarnings("ignore:reduction")
def test_losses_lie_as_pytorchs(
    name: str, input: tuple[int, ...], target: tuple[int, ...], reduction: str
) -> None:
    ours, theirs = (_strides(t, name, (input, target), reduction) for t in (flambeau, reference))
    assert ours == theirs
