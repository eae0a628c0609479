"""Which zero an operator gives, where PyTorch does not decide by the place in the array."""

from __future__ import annotations

from typing import Any

import pytest
import torch as reference

import flambeau

TYPES = ("float16", "bfloat16", "float32", "float64")
ZEROS = (0.0, -0.0)


def _signs(values: Any) -> Any:
    assert not values.any()
    return values.signbit().tolist()


@pytest.mark.parametrize("count", [1, 3, 17, 100_003])
@pytest.mark.parametrize("dtype", TYPES)
def test_relu(dtype: str, count: int) -> None:
    def seen(t: Any, zero: float) -> Any:
        x = t.full((count,), zero, dtype=getattr(t, dtype))
        relu = t.nn.functional.relu
        return [_signs(y) for y in (t.relu(x), relu(x), relu(x.clone(), True), x.clone().relu_())]

    for zero in ZEROS:
        assert seen(flambeau, zero) == seen(reference, zero)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("name", ("i1", "i1e", "modified_bessel_i1"))
def test_bessel(name: str, dtype: str) -> None:
    def seen(t: Any) -> Any:
        return _signs(getattr(t.special, name)(t.tensor(ZEROS, dtype=getattr(t, dtype))))

    assert seen(flambeau) == seen(reference)
