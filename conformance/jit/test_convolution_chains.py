"""Convolutions with what follows them, traced and frozen, against PyTorch's eager operators.

What may follow: normalisation, a residual on either side of the sum, an activation. The residual
may be broadcast, transposed or of another type, images may be channels-last, and gradients may be
wanted: then the operators run one by one, with the same results.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau
from flambeau._runtime import choice
from flambeau.jit.optimise import optimised
from flambeau.jit.optimise.images import ConvolutionChain

LIBRARIES = (reference, flambeau)
SUMS: dict[str, Callable[[Any, Any], Any]] = {
    "none": lambda y, other: y,
    "right": lambda y, other: y + other,
    "left": lambda y, other: other + y,
    "in place": lambda y, other: y.add_(other),
}
ACTIVATIONS = ("none", "relu", "relu6", "hardtanh", "clamp")


@dataclass(frozen=True)
class Case:
    """A chain with random numbers."""

    seed: int
    residual: str = "same"
    """`same`, `broadcast`, `transposed` (other strides) or `float64`."""
    pixels: bool = False
    """Whether images are channels-last."""
    grad: bool = False


CASES = [
    *[Case(seed) for seed in range(8)], *[Case(seed, pixels=True) for seed in (20, 21)],
    *[Case(seed, residual) for residual in ("broadcast", "transposed", "float64")
      for seed in range(30, 33)],
    *[Case(seed, grad=True) for seed in (40, 41)],
]  # fmt: skip


def module_of(torch: Any, case: Case) -> tuple[Any, list[Any]]:
    """A module in evaluation mode, an image and a residual."""
    rng = np.random.default_rng(case.seed)
    groups, stride, kernel = (
        int(rng.choice([1, 1, 2])),
        int(rng.integers(1, 3)),
        int(rng.choice([1, 3])),
    )
    inside, outside = groups * int(rng.integers(2, 20)), groups * int(rng.integers(2, 40))
    add, activation = str(rng.choice(list(SUMS))), str(rng.choice(ACTIVATIONS))
    if case.residual != "same":
        add = ["right", "left", "in place"][case.seed % 3]
    if case.residual == "float64" and add == "in place":
        add = "left"
    nn = torch.nn

    class Chain(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.convolution = nn.Conv2d(inside, outside, kernel, stride, kernel // 2,
                                         bias=case.seed % 2 == 0, groups=groups)  # fmt: skip
            self.norm = nn.BatchNorm2d(outside) if case.seed % 3 else nn.Identity()

        def forward(self, x: Any, other: Any) -> Any:
            y = SUMS[add](self.norm(self.convolution(x)), other)
            if activation == "hardtanh":
                return nn.functional.hardtanh(y, -0.5, 0.7)
            if activation == "clamp":
                return y.clamp(max=0.4)
            return y if activation == "none" else getattr(nn.functional, activation)(y)

    module = Chain().eval()
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if tensor.is_floating_point():
                numbers = rng.normal(size=tuple(tensor.shape)) * 0.4
                tensor.copy_(torch.tensor(abs(numbers) + 0.5 if "var" in name else numbers))
    images, side = int(rng.integers(1, 4)), int(rng.integers(3, 18))
    x = torch.tensor(rng.normal(size=(images, inside, side, side)).astype(np.float32))
    size = (side - 1) // stride + 1
    shape = (images, outside, size, size)
    if case.residual == "broadcast":
        shape = (1, outside, 1, size)
    numbers = rng.normal(size=shape).astype(
        case.residual.replace("same", "float32") if case.residual == "float64" else np.float32
    )
    if case.residual == "transposed":
        numbers = np.ascontiguousarray(numbers.swapaxes(2, 3))
    other = torch.tensor(numbers)
    if case.residual == "transposed":
        other = other.transpose(2, 3)
    if case.pixels:
        x = x.to(memory_format=torch.channels_last)
        other = other.to(memory_format=torch.channels_last)
    if case.grad:
        x.requires_grad_()
    return module, [x, other]


def results(torch: Any, case: Case) -> list[tuple[Any, ...]]:
    """Value, strides and dtype of what is computed."""
    module, inputs = module_of(torch, case)
    call = module
    if torch is flambeau:
        call = torch.jit.freeze(torch.jit.trace(module, inputs, check_trace=False))
        nodes = optimised(call.forward._function).walk()
        assert any(isinstance(n.attributes.get("function"), ConvolutionChain) for n in nodes)
    with torch.set_grad_enabled(case.grad):
        for _ in range(2):
            found = [call(*inputs)]
    if case.grad:
        found += torch.autograd.grad(found[0].square().sum(), inputs[:1])
    return [(np.asarray(t.detach().numpy()), tuple(t.stride()), str(t.dtype)[-7:]) for t in found]


@pytest.mark.parametrize(("limit", "cases"), [(0, CASES), (choice.NEVER, CASES[::4])],
                         ids=["llvm", "numpy"])  # fmt: skip
def test_chains(limit: int, cases: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "LIMITS", dict.fromkeys(choice.LIMITS, limit))
    for case in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs, ours = (results(torch, case) for torch in LIBRARIES)
        for (expected, *others), (value, *own) in zip(theirs, ours, strict=True):
            assert own == others, case
            np.testing.assert_allclose(value, expected, rtol=2e-4, atol=2e-4, err_msg=str(case))
