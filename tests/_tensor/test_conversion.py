"""Tensors from and to Python values, ndarrays, pickles."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import flambeau as torch


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, torch.int64), (1.0, torch.float32), (True, torch.bool), (1j, torch.complex64),
        ([1, 2.0], torch.float32), ([True, 2], torch.int64), ([], torch.float32),
        (np.float64(1.5), torch.float64), (np.ones(2, np.int16), torch.int16),
        ([np.float32(1)], torch.float32), ([[1, 2], [3, 4]], torch.int64),
    ],
)  # fmt: skip
def test_types_are_found_in_the_values(value: Any, dtype: Any) -> None:
    x = torch.tensor(value)
    assert x.dtype is dtype
    assert np.array_equal(x.numpy(), np.asarray(value))


def test_tensor_copies_and_from_numpy_shares() -> None:
    array = np.zeros(3)
    shared, copied = torch.from_numpy(array), torch.tensor(array)
    array[0] = 5
    assert shared.tolist() == [5.0, 0.0, 0.0]
    assert copied.tolist() == [0.0, 0.0, 0.0]
    shared.add_(1)
    assert array.tolist() == [6.0, 1.0, 1.0]
    assert np.shares_memory(shared.numpy(), array)


def test_strides_survive() -> None:
    array = np.arange(12.0).reshape(3, 4)[::2, 1:3].T
    x = torch.from_numpy(array)
    assert x.tolist() == array.tolist()
    assert x.stride() == (1, 8)
    assert x.numpy().strides == array.strides


def test_numbers_out() -> None:
    assert torch.tensor([[2.5]]).item() == 2.5
    assert float(torch.tensor(2)) == 2.0
    assert int(torch.tensor(2.9)) == 2
    assert [10, 20][torch.tensor(1)] == 20
    assert torch.tensor(1.5).bfloat16().tolist() == 1.5
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted"):
        torch.ones(2).item()
    with pytest.raises(ValueError, match="only one element tensors"):
        float(torch.ones(2))
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value"):
        bool(torch.ones(2))


def test_a_scalar_of_a_tensor_with_grad_warns() -> None:
    with pytest.warns(UserWarning, match="requires_grad=True to a scalar"):
        float(torch.ones((), requires_grad=True))


def test_numpy_refuses_what_it_cannot_show() -> None:
    with pytest.raises(RuntimeError, match="Can't call numpy\\(\\) on Tensor that requires grad"):
        torch.ones(2, requires_grad=True).numpy()
    with pytest.raises(TypeError, match="BFloat16"):
        torch.ones(2).bfloat16().numpy()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "bfloat16", "float64", "complex64"])
def test_pickles_and_copies(dtype: str) -> None:
    x = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(torch, dtype)).t()
    for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), x.clone()):
        assert other.dtype is x.dtype
        assert torch.equal(other, x)
        assert other.data_ptr() != x.data_ptr()


def test_ragged_lists() -> None:
    with pytest.raises(ValueError, match=r"expected sequence of length 2 at dim 1 \(got 1\)"):
        torch.tensor([[1, 2], [3]])
