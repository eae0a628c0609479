"""Real and imaginary parts over the memory of complex arrays."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau._core import dtype as dt
from flambeau._core.parts import both_parts, imaginary_part, part_type, real_part


@pytest.mark.parametrize("element", [dt.complex32, dt.complex64, dt.complex128], ids=str)
def test_parts_share_memory(element: dt.dtype) -> None:
    """Parts are views, of any strides, in the type of the parts."""
    whole = np.array([[1 + 2j, 3 - 4j], [5 + 0.5j, -1j]]).astype(element.numpy_dtype)
    view = whole.T[::-1]
    np.testing.assert_array_equal(real_part(view).astype(float), [[3, 0], [1, 5]])
    np.testing.assert_array_equal(imaginary_part(view).astype(float), [[-4, -1], [2, 0.5]])
    assert real_part(view).dtype == part_type(whole.dtype) == element.to_real().numpy_dtype
    both_parts(view)[0, 0] = 7, 8
    assert complex(whole[0, 1]) == 7 + 8j
