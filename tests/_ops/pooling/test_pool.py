"""Max pools: the gradient found by comparing with the maxima equals the one from positions."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau._ops.conv import images_last
from flambeau._ops.conv import numpy_form as conv
from flambeau._runtime import choice
from flambeau.nn import functional as F

LIMITS = {"numpy": choice.NEVER, "llvm": 0}


def gradient(values: np.ndarray, grad: np.ndarray, return_indices: bool) -> np.ndarray:
    x = torch.tensor(values, requires_grad=True)
    result = F.max_pool2d(x, 2, return_indices=return_indices)
    pooled = result[0] if return_indices else result
    pooled.backward(torch.tensor(grad))
    return x.grad.numpy()


@pytest.mark.parametrize("special", [None, "ties", "nan", "infinite grad", "lowest"])
def test_gradient_by_comparison(special: str | None) -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal((2, 3, 7, 6)).astype(np.float32)
    grad = rng.standard_normal((2, 3, 3, 3)).astype(np.float32)
    if special == "ties":
        values = np.round(values).clip(0)
    if special == "nan":
        values[0, 0, :3, 1] = np.nan
    if special == "infinite grad":
        grad[0, 0, 0] = np.inf
    if special == "lowest":
        values[1] = -np.inf
    by_comparison = gradient(values, grad, return_indices=False)
    np.testing.assert_array_equal(by_comparison, gradient(values, grad, return_indices=True))


@pytest.mark.parametrize("engine", ["numpy", "llvm"])
@pytest.mark.parametrize("return_indices", [False, True])
def test_gradients_of_windows_beside_the_plane(
    engine: str, return_indices: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both planes' only window holds none of their elements: nothing learns from it."""
    if engine == "llvm":
        pytest.importorskip("llvmlite")
    for work in ("pool", "pool places"):
        monkeypatch.setitem(choice.LIMITS, work, LIMITS[engine])
    x = torch.ones(1, 2, 2, 2, requires_grad=True)
    found = F.max_pool2d(x, 2, 1, 1, 3, return_indices=return_indices)
    result = found[0] if return_indices else found
    assert result.tolist() == [[[[-np.inf]], [[-np.inf]]]]
    grad = torch.ones_like(result, requires_grad=True)
    (first,) = torch.autograd.grad(result, x, grad, create_graph=True)
    assert not first.any()
    (second,) = torch.autograd.grad(first, grad, torch.ones_like(first))
    assert not second.any()


@pytest.mark.parametrize("images", [1, 5, 64])
def test_small_planes_agree_with_image_by_image(
    images: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(images)
    x, w = rng.standard_normal((images, 4, 6, 5)), rng.standard_normal((6, 2, 3, 2))
    numbers = ((2, 1), (1, 1), (1, 2), 2)
    result = conv.conv(x, w, None, *numbers)
    grads = (
        conv.conv_backward_input(result, w, x.shape, *numbers),
        conv.conv_backward_weight(result, x, w.shape, *numbers),
    )
    monkeypatch.setattr(images_last, "applies", lambda output: False)
    np.testing.assert_allclose(result, conv.conv(x, w, None, *numbers))
    for have, function, other, shape in zip(
        grads, (conv.conv_backward_input, conv.conv_backward_weight), (w, x), (x.shape, w.shape),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(have, function(result, other, shape, *numbers))
