"""Matrices that hold infinities: nan comes out, and it comes out at all."""

from __future__ import annotations

import pytest

import flambeau as torch

# ruff: noqa: ANN001, ANN201


@pytest.mark.parametrize("value", [float("inf"), -float("inf")])
@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (2, 4)])
def test_singular_values(value, shape):
    """Only those matrices of a batch are concerned."""
    matrices = torch.randn(2, *shape)
    expected = torch.linalg.svdvals(matrices[0])
    matrices[1, 0, 1] = value
    values = torch.linalg.svdvals(matrices)
    torch.testing.assert_close(values[0], expected)
    assert values[1].isnan().all()
    for part in torch.linalg.svd(matrices):
        assert part[1].isnan().all()
        assert not part[0].isnan().any()
    assert torch.linalg.pinv(matrices)[1].isnan().all()
