"""Promotion: a lattice, categories, and weak operands."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import flambeau as torch
from flambeau._core.promotion import promote_types

NAMES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip
DTYPES = [getattr(torch, name) for name in NAMES]


def test_promotion_is_a_lattice() -> None:
    for a, b in itertools.product(DTYPES, DTYPES):
        joined = promote_types(a, b)
        assert joined is promote_types(b, a)
        assert promote_types(joined, a) is joined
        assert promote_types(a, a) is a
    for a, b, c in itertools.product(DTYPES, DTYPES, DTYPES):
        left = promote_types(promote_types(a, b), c)
        right = promote_types(a, promote_types(b, c))
        if torch.bfloat16 not in (a, b, c) and torch.float16 not in (a, b, c):
            assert left is right


def test_integers_promote_as_in_numpy() -> None:
    for a, b in itertools.product(NAMES[:6], NAMES[:6]):
        wanted = np.promote_types(a, b).name
        assert promote_types(getattr(torch, a), getattr(torch, b)) is getattr(torch, wanted)


@pytest.mark.parametrize(
    ("left", "right", "wanted"),
    [
        (torch.ones(2, dtype=torch.int32), 1.5, torch.float32),
        (torch.ones(2, dtype=torch.int32), 3, torch.int32),
        (torch.ones(2, dtype=torch.bool), 3, torch.int64),
        (torch.ones(2, dtype=torch.float16), 1.5, torch.float16),
        (torch.ones(2, dtype=torch.float64), 1j, torch.complex128),
        (torch.ones(2), torch.ones((), dtype=torch.float64), torch.float32),
        (torch.ones(2, dtype=torch.int64), torch.ones((), dtype=torch.float64), torch.float64),
        (torch.ones((), dtype=torch.float64), 1, torch.float64),
        (torch.ones(()), torch.ones((), dtype=torch.float64), torch.float64),
        (torch.ones(2, dtype=torch.uint8), torch.ones(2, dtype=torch.int8), torch.int16),
        (torch.ones(2).half(), torch.ones(2).bfloat16(), torch.float32),
    ],
)
def test_weak_operands(left: object, right: object, wanted: object) -> None:
    assert torch.result_type(left, right) is wanted
    assert (left + right).dtype is wanted
    assert (right + left).dtype is wanted


def test_casts_that_lose_a_category_are_refused_in_place() -> None:
    assert torch.can_cast(torch.float64, torch.float32)
    assert not torch.can_cast(torch.float32, torch.int64)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output"):
        torch.ones(2, dtype=torch.int64).add_(1.5)
