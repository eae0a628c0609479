"""Reductions of the kind `rows`: logsumexp over dims in any order, without elements, of types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from tests.random_seeds import generator


def plain(values: np.ndarray, dims: Any, keepdim: bool) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.exp(values).sum(dims, keepdims=keepdim))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64"])
@pytest.mark.parametrize("shape", [(7,), (3, 0), (0, 3), (4, 5, 6), (40, 50, 30)])
def test_any_dims(shape: tuple[int, ...], dtype: str) -> None:
    random = np.random.default_rng(generator("logsumexp", shape, dtype).getrandbits(32))
    values = random.standard_normal(shape) + 1j * random.standard_normal(shape)
    values = (values if dtype.startswith("c") else 2 * values.real).astype(dtype)
    wide = values.astype(np.complex128 if dtype.startswith("c") else np.float64)
    last = len(shape) - 1
    for dims in {(0,), (last,), (last, 0) if last else (0,), tuple(range(len(shape)))}:
        for keepdim in (False, True):
            found = torch.from_numpy(values).logsumexp(dims, keepdim)
            wanted = plain(wide, dims, keepdim)
            assert found.shape == wanted.shape and found.is_contiguous()
            # exp of both: the imaginary part is an angle
            np.testing.assert_allclose(np.exp(found.numpy()), np.exp(wanted), rtol=1e-4)


def test_a_number_is_a_row() -> None:
    assert torch.tensor(3.0).logsumexp(0).item() == 3
    assert torch.tensor(3.0).logsumexp(0, keepdim=True).shape == ()


def test_large_numbers_do_not_overflow() -> None:
    row = torch.tensor([1000.0, 1000.0])
    assert row.logsumexp(0).item() == pytest.approx(1000 + np.log(2))
    assert torch.tensor([float("inf"), 1.0]).logsumexp(0).item() == float("inf")
    assert torch.full((3,), -float("inf")).logsumexp(0).item() == -float("inf")
