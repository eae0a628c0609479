"""Numbers where functions made of others take tensors, and tuples: the words of the function."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import flambeau

CALLS = (
    "F.conv1d(x, 0)",
    "F.conv1d(x, x, 0)",
    "F.conv2d(x, x, x, 1, 1.5)",
    "torch.conv1d(x, 0)",
    "F.conv_transpose1d(x, 0)",
    "F.pairwise_distance(x, 0)",
    "F.poisson_nll_loss(x, 0)",
    "F.pad(x, 0)",
    "F.pad(x, 'a')",
    "F.pad(x, 1.5)",
    "F.pad(x, None)",
    "F.pad(x, range(2))",
)


def said(library: Any, call: str) -> str:
    names = {"torch": library, "F": library.nn.functional, "x": library.ones(1, 1, 3)}
    with pytest.raises(TypeError) as caught:
        eval(call, names)  # noqa: S307
    return str(caught.value).partition("\n")[0]


@pytest.mark.parametrize("call", CALLS)
def test_words(call: str) -> None:
    assert said(flambeau, call) == said(torch, call)
