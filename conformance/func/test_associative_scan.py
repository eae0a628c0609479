"""`torch._higher_order_ops.associative_scan` beside PyTorch's: results, gradients, refusals."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau
from tests.random_seeds import generator


def add(a: Any, b: Any) -> Any:
    return a + b


def linear(a: Any, b: Any) -> Any:
    """Two maps y -> a y + b, one after the other."""
    return a[0] * b[0], b[0] * a[1] + b[1]


def matrices(a: Any, b: Any) -> Any:
    return a @ b


Call = Callable[[Any, Any, Any], Any]
CALLS: dict[str, Call] = {
    "sums": lambda t, scan, x: scan(add, x, 1, combine_mode="generic"),
    "backwards": lambda t, scan, x: scan(add, x, -3, reverse=True, combine_mode="generic"),
    "a tree": lambda t, scan, x: scan(linear, (x, x * 2 + 1), 2, combine_mode="generic"),
    "matrices": lambda t, scan, x: scan(matrices, x[..., :2].mT[:, :, :2], 0,
                                        combine_mode="generic"),
    "one": lambda t, scan, x: scan(add, x[:, :1], 1, combine_mode="generic"),
    "on the CPU": lambda t, scan, x: scan(add, x, 1),
    "a mode": lambda t, scan, x: scan(add, x, 1, combine_mode="all"),
    "no function": lambda t, scan, x: scan(3, x, 1, combine_mode="generic"),
    "no dim": lambda t, scan, x: scan(add, x, 0.5, combine_mode="generic"),
    "another dim": lambda t, scan, x: scan(add, x, 5, combine_mode="generic"),
    "no bool": lambda t, scan, x: scan(add, x, 1, reverse=1, combine_mode="generic"),
    "no elements": lambda t, scan, x: scan(add, x[:, :0], 1, combine_mode="generic"),
    "no dims": lambda t, scan, x: scan(add, x.sum(), 0, combine_mode="generic"),
}  # fmt: skip


def observed(name: str, library: Any, numbers: np.ndarray) -> Any:
    package = f"{library.__name__}._higher_order_ops.associative_scan"
    scan = importlib.import_module(package).associative_scan
    x = library.from_numpy(numbers.copy()).requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = CALLS[name](library, scan, x)
        except Exception as error:  # noqa: BLE001  # whatever a library refuses
            return type(error).__name__, str(error)
        found = found if isinstance(found, tuple) else (found,)
        sum(part.square().sum() for part in found).backward()
    return [part.detach().numpy() for part in found] + [x.grad.numpy()]


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    draw = generator("associative scan", name)
    shape = tuple(draw.randrange(2, 7) for _ in range(3))
    numbers = np.random.default_rng(draw.randrange(1 << 30)).uniform(0.5, 1.2, shape)
    want, got = observed(name, reference, numbers), observed(name, flambeau, numbers)
    if isinstance(want, tuple):
        assert got == want
        return
    for ours, theirs in zip(got, want, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
