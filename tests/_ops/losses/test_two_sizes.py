"""Losses of an input and a target of two sizes: eagerly and in scripts the same."""

from __future__ import annotations

import pytest

import flambeau as torch
import flambeau.nn.functional as F


def losses(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.mse_loss(x, y) + F.smooth_l1_loss(x, y) + F.huber_loss(x, y) + F.l1_loss(x, y)


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_scripts_compute_what_eager_calls_do() -> None:
    x, y = torch.full((2, 3), 2.0), torch.zeros(3)
    scripted = torch.jit.script(losses)
    assert scripted(x, y).item() == losses(x, y).item() == 4.0 + 1.5 + 1.5 + 2.0
    assert scripted(y, x).item() == losses(y, x).item()
