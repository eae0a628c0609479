"""How results of elementwise operators lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch

USES: list[Callable[[Any], Any]] = [torch.abs, torch.relu, torch.sign, lambda x: x + x]


@pytest.mark.parametrize("use", USES)
def test_images_with_channels_innermost_keep_that(use: Any) -> None:
    """Strides of dims of size 1 say nothing; the result's are those of a new tensor."""
    x = torch.ones(6, 3, 1, 3).permute(2, 3, 0, 1)
    assert x.stride() == (3, 1, 9, 3)
    assert use(x).stride() == (54, 1, 9, 3)


@pytest.mark.parametrize("use", USES)
def test_other_dense_layouts_are_handed_on(use: Any) -> None:
    x = torch.ones(2, 3, 1, 4).permute(1, 0, 2, 3)
    assert use(x).stride() == x.stride() == (4, 12, 4, 1)
