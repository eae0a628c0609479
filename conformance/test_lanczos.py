"""Resizing by Lanczos' filter against PyTorch: values, bytes, gradients and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau

LIBRARIES = (reference, flambeau)
SIZES = [(3, 3), (4, 9), (11, 7), (6, 1)]


def resized(torch: Any, data: np.ndarray, **words: Any) -> Any:
    x = torch.from_numpy(data)
    return torch.nn.functional.interpolate(x, mode="lanczos", **words)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.uint8])
def test_values(size: tuple[int, int], kind: type) -> None:
    data = (np.random.default_rng(0).random((2, 3, 6, 5)) * 255).astype(kind)
    theirs, ours = (resized(t, data, size=size, antialias=True).numpy() for t in LIBRARIES)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-9 if kind is np.float64 else 1e-3)


@pytest.mark.parametrize("size", SIZES)
def test_gradients(size: tuple[int, int]) -> None:
    data = np.random.default_rng(1).standard_normal((1, 2, 6, 5))
    grads = []
    for torch in LIBRARIES:
        x = torch.from_numpy(data).requires_grad_()
        out = torch.nn.functional.interpolate(x, size=size, mode="lanczos", antialias=True)
        (out**2).sum().backward()
        grads.append(x.grad.numpy())
    np.testing.assert_allclose(grads[1], grads[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "words",
    [{"size": (3, 3)}, {"size": (3, 3), "antialias": True, "align_corners": True},
     {"scale_factor": 0.5, "antialias": True}, {"scale_factor": (2, 0.7), "antialias": True}],
)  # fmt: skip
def test_what_is_allowed(words: dict[str, Any]) -> None:
    data = np.random.default_rng(2).standard_normal((1, 1, 6, 5))
    seen = []
    for torch in LIBRARIES:
        try:
            seen.append(resized(torch, data, **words).tolist())
        except ValueError as error:
            seen.append(str(error))
    if isinstance(seen[0], str):
        assert seen[1] == seen[0]
    else:
        np.testing.assert_allclose(seen[1], seen[0], rtol=1e-9, atol=1e-12)
