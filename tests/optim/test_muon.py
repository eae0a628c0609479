"""Muon: steps are nearly orthogonal, and scaled by the shape."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import optim


def step_of(shape: tuple[int, int], **options: object) -> np.ndarray:
    torch.manual_seed(0)
    x = torch.zeros(shape, requires_grad=True)
    x.grad = torch.randn(shape)
    optim.Muon([x], lr=1.0, weight_decay=0.0, **options).step()
    return -x.detach().numpy()


@pytest.mark.parametrize("shape", [(6, 6), (8, 3), (3, 8)])
def test_singular_values_are_about_one(shape: tuple[int, int]) -> None:
    scale = np.sqrt(max(1, shape[0] / shape[1]))
    values = np.linalg.svd(step_of(shape) / scale, compute_uv=False)
    assert values.min() > 0.3 and values.max() < 1.4


def test_the_size_of_adamw() -> None:
    step = step_of((16, 16), adjust_lr_fn="match_rms_adamw")
    assert 0.1 < np.sqrt(np.mean(step**2)) < 0.3


def test_the_first_step_goes_along_the_gradient() -> None:
    torch.manual_seed(0)
    grad = torch.randn(4, 3).numpy()
    left, _, right = np.linalg.svd(grad, full_matrices=False)
    assert np.sum(step_of((4, 3)) * (left @ right)) > 0


def test_only_matrices() -> None:
    with pytest.raises(ValueError, match=r"2D parameters .* with size: torch.Size\(\[3\]\)"):
        optim.Muon([torch.ones(3, requires_grad=True)])
    x = torch.ones((2, 2), dtype=torch.complex64, requires_grad=True)
    x.grad = torch.ones_like(x)
    with pytest.raises(RuntimeError, match="does not support complex parameters"):
        optim.Muon([x]).step()
