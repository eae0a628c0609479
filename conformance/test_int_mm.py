"""Products of bytes: values and refusals of `torch._int_mm`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau

SHAPES = [((3, 4), (4, 2)), ((1, 300), (300, 5)), ((40, 70), (70, 33)), ((3, 0), (0, 2))]
REFUSED = [
    (("int8", (3, 4)), ("int8", (5, 2))),
    (("float32", (3, 4)), ("int8", (4, 2))),
    (("int8", (3, 4)), ("float32", (4, 2))),
    (("int8", (3, 4)), ("uint8", (4, 2))),
    (("int8", (1, 3, 4)), ("int8", (4, 2))),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_values(shapes: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)
    limits = np.iinfo(dtype)
    left = rng.integers(limits.min, limits.max + 1, shapes[0], dtype)
    right = rng.integers(-128, 128, shapes[1], np.int8)
    ours, theirs = (
        t._int_mm(t.from_numpy(left), t.from_numpy(right)).numpy() for t in (flambeau, reference)
    )
    np.testing.assert_array_equal(ours, theirs)
    assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("operands", REFUSED, ids=str)
def test_refusals(operands: Any) -> None:
    texts = []
    for t in (flambeau, reference):
        left, right = (t.ones(shape, dtype=getattr(t, name)) for name, shape in operands)
        with pytest.raises(RuntimeError) as caught:
            t._int_mm(left, right)
        texts.append(str(caught.value).partition("\n")[0])
    assert texts[0] == texts[1]
