"""Products of bytes."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from tests.random_seeds import generator


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("size", [(1, 1, 1), (7, 30, 5), (40, 300, 33), (4, 0, 3), (0, 2, 3)])
def test_int_mm(dtype: type, size: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(generator("int_mm", dtype, size).getrandbits(32))
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max + 1
    left = rng.integers(low, high, size[:2], dtype)
    right = rng.integers(-128, 128, size[1:], np.int8)
    result = torch._int_mm(torch.from_numpy(left), torch.from_numpy(right)).numpy()
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, left.astype(np.int64) @ right.astype(np.int64))


def test_products_of_int8_wrap_round() -> None:
    rng = np.random.default_rng(generator("int8").getrandbits(32))
    left = rng.integers(-128, 128, (3, 20, 70), np.int8)
    right = rng.integers(-128, 128, (70, 30), np.int8)
    result = torch.from_numpy(left) @ torch.from_numpy(right)
    assert result.dtype is torch.int8
    wanted = (left.astype(np.int64) @ right.astype(np.int64)).astype(np.int8)
    np.testing.assert_array_equal(result.numpy(), wanted)


def test_what_int_mm_refuses() -> None:
    bytes_ = torch.ones(3, 4, dtype=torch.int8)
    with pytest.raises(RuntimeError, match="to be of dimension 2 but got 3"):
        torch._int_mm(bytes_[None], bytes_.T)
    with pytest.raises(RuntimeError, match="Expected self dtype to be int8 or uint8 but got float"):
        torch._int_mm(bytes_.float(), bytes_.T)
    with pytest.raises(
        RuntimeError, match=r"self.size\(1\) needs to match mat2.size\(0\) but got 4"
    ):
        torch._int_mm(bytes_, bytes_)
