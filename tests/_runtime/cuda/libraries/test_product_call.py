"""The call of a product: what reaches the library's function, played by a function of Python."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")  # the call is code that it makes

from flambeau._runtime.cuda.libraries import product_call

WORD = ctypes.c_size_t
PRODUCT = ctypes.CFUNCTYPE(ctypes.c_int, *[WORD] * 16)


class Array(np.ndarray):
    """An array of another class."""


def test_what_stands_still_and_what_is_given() -> None:
    found: list[Any] = []
    product = PRODUCT(lambda *given: found.append(given) or -5)
    still = range(100, 109)
    call = product_call.calling(product, *still)
    a, b, c = np.zeros(3), np.zeros((4, 5))[1:, 2:], np.zeros(2).view(Array)
    assert call(1, a, b, 2, c, 3, 4) == -5
    at = [x.ctypes.data for x in (a, b, c)]
    assert found == [(100, 101, 1, at[0], 102, at[1], 103, 2, at[2], 104, 3, 105, 106, 107, 108, 4)]
    with pytest.raises(TypeError):
        call(1, a, b)
