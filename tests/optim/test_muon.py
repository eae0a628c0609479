"""Muon: steps are nearly orthogonal, and scaled by the shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau import optim
from flambeau._runtime import choice


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


OPTIONS: list[dict[str, Any]] = [
    {}, {"nesterov": False, "momentum": 0.5}, {"adjust_lr_fn": "match_rms_adamw", "ns_steps": 2},
    {"weight_decay": 0.5, "lr": 0.05, "ns_coefficients": (1.5, -0.5, 0.0)},
]  # fmt: skip
SHAPES = ((5, 3), (3, 70), (100, 10), (1, 9), (8, 1), (17, 17), (64, 131), (130, 64), (70, 66))


def stepped(options: dict[str, Any], dtype: Any) -> list[np.ndarray]:
    """Parameters and momentum after a few steps; the last two are not for the kernel."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in SHAPES]
    params = [torch.nn.Parameter(torch.from_numpy(array)) for array in arrays]
    params.append(torch.nn.Parameter(torch.from_numpy(rng.random((6, 4)).astype(dtype)).t()))
    optimizer = optim.Muon(params, **options)
    for step in range(3):
        for parameter in params[step < 1 :]:
            grad = rng.standard_normal(tuple(parameter.shape)).astype(dtype)
            parameter.grad = torch.from_numpy(grad)
        optimizer.step()
    kept = [optimizer.state[parameter]["momentum_buffer"] for parameter in params]
    return [tensor.detach().numpy() for tensor in (*params, *kept)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel_and_operators_agree(options: dict[str, Any], dtype: Any,
                                    monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    pytest.importorskip("llvmlite")
    results = []
    for limit in (0, choice.NEVER):
        monkeypatch.setitem(choice.LIMITS, "optimizer of matrices", limit)
        results.append(stepped(options, dtype))
    lr = options.get("lr", 1e-3)
    for one, other in zip(*results, strict=True):
        # steps are bfloat16: some of their elements round the other way
        assert np.abs(one - other).max() <= 0.05 * lr
        assert np.abs(one - other).mean() <= 0.005 * lr
