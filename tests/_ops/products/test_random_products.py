"""A sample of random products; `random_products.py` draws as many as one likes."""

from __future__ import annotations

import pytest

pytest.importorskip("llvmlite")

from flambeau._ops.products import gemm
from tests._ops.products import random_products
from tests.random_seeds import generator


@pytest.mark.skipif(not gemm.usable(), reason="BLAS multiplies where there is no FMA")
def test_random_products() -> None:
    assert not random_products.check(150, generator("products"))
