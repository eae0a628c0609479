"""Functions that make tensors from sizes and options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch


@pytest.mark.parametrize("dtype", ["float32", np.float32, 3])
def test_what_is_no_dtype_is_a_type_error(dtype: Any) -> None:
    for make in (torch.ones, torch.zeros, torch.randn, torch.eye):
        with pytest.raises(TypeError, match="argument 'dtype' must be torch.dtype, not"):
            make(2, dtype=dtype)


def test_python_types_stand_for_dtypes() -> None:
    assert torch.ones(1, dtype=int).dtype is torch.int64
    assert torch.ones(1, dtype=float).dtype is torch.float64
