"""Second and third derivatives of `grid_sample`, against finite differences."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau.nn import functional as F

CHOICES = [
    (mode, padding, corners)
    for mode in ("bilinear", "bicubic")
    for padding in ("zeros", "border", "reflection")
    for corners in (True, False)
]


def numbers(*shape: int) -> Any:
    generator = torch.Generator().manual_seed(0)
    drawn = torch.rand(shape, dtype=torch.float64, generator=generator)
    return (drawn * 2.4 - 1.2).requires_grad_()


@pytest.mark.parametrize(("mode", "padding", "corners"), CHOICES)
def test_curves_of_images(mode: str, padding: str, corners: bool) -> None:
    image, grid = numbers(1, 2, 3, 4), numbers(1, 2, 1, 2)
    assert torch.autograd.gradgradcheck(
        lambda x, g: F.grid_sample(x, g, mode, padding, corners), (image, grid)
    )


def test_curves_in_space() -> None:
    image, grid = numbers(1, 1, 2, 3, 2), numbers(1, 1, 1, 2, 3)
    assert torch.autograd.gradgradcheck(
        lambda x, g: F.grid_sample(x, g, padding_mode="border", align_corners=True), (image, grid)
    )


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_the_third_order(mode: str) -> None:
    image, grid = numbers(1, 1, 3, 3), numbers(1, 1, 2, 2)

    def slopes(x: Any, g: Any) -> Any:
        y = F.grid_sample(x, g, mode, align_corners=False)
        return torch.autograd.grad((y * y).sum(), (x, g), create_graph=True)

    assert torch.autograd.gradgradcheck(slopes, (image, grid))


def test_nearest_has_no_curves() -> None:
    image, grid = numbers(1, 1, 3, 3), numbers(1, 1, 2, 2)
    y = F.grid_sample(image, grid, "nearest", align_corners=False)
    first = torch.autograd.grad((y * y).sum(), (image, grid), create_graph=True)
    assert not first[1].any()
    (second,) = torch.autograd.grad(first[1].sum(), (grid,))
    assert not second.any()


@pytest.mark.parametrize("shape", [(0, 2, 3, 3), (2, 0, 3, 3)])
def test_nothing_to_sample(shape: tuple[int, ...]) -> None:
    image = torch.zeros(shape, requires_grad=True)
    grid = torch.zeros(shape[0], 2, 2, 2, requires_grad=True)
    y = F.grid_sample(image, grid, align_corners=False)
    first = torch.autograd.grad(y.sum(), (image, grid), create_graph=True)
    second = torch.autograd.grad(first[1].sum(), (image, grid))
    assert [tuple(g.shape) for g in second] == [shape, tuple(grid.shape)]
