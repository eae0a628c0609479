"""Calls with several mistakes: which of them an error is about, and in which words."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest
import torch as reference

import flambeau

SHAPES = ((), (3,), (2, 3), (0, 3), (3, 3))
TYPES = ("float16", "bfloat16", "int32", "bool", "float32", "complex64")
OF_A_MATRIX = {
    **{name: lambda t, a, name=name: getattr(t.linalg, name)(a) for name in (
        "cholesky", "cholesky_ex", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "inv_ex",
        "ldl_factor", "ldl_factor_ex", "lu", "lu_factor", "lu_factor_ex", "matrix_exp", "qr",
        "slogdet", "svd", "svdvals", "matrix_rank", "pinv")},
    **{f"torch.{name}": lambda t, a, name=name: getattr(t, name)(a) for name in (
        "cholesky", "det", "inverse", "logdet", "matrix_exp", "qr", "slogdet", "svd", "pinverse",
        "geqrf", "cholesky_inverse", "nuclear_norm")},
    "matrix_norm": lambda t, a: t.linalg.matrix_norm(a),
    "matrix_norm of an unknown order": lambda t, a: t.linalg.matrix_norm(a, "a"),
    "nuclear norm": lambda t, a: t.linalg.matrix_norm(a, "nuc"),
    "matrix_power": lambda t, a: t.linalg.matrix_power(a, 2),
    "cond": lambda t, a: t.linalg.cond(a),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_A_MATRIX)
def test_a_matrix(name: str) -> None:
    """Its dims, then whether it is square, then its type, or in another order."""
    for shape, dtype in itertools.product(SHAPES, TYPES):
        _compare(lambda t: OF_A_MATRIX[name](t, _ones(t, shape, dtype)), (shape, dtype))  # noqa: B023


def _ones(torch: Any, shape: tuple[int, ...], dtype: str) -> Any:
    made = torch.ones(shape, dtype=getattr(torch, dtype))
    return made + torch.eye(3).to(made.dtype) if shape == (3, 3) and dtype != "bool" else made


def _compare(call: Any, *told: Any) -> None:
    here, there = (_said(call, torch) for torch in (flambeau, reference))
    assert here == there, told


def _said(call: Any, torch: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call(torch)
        except Exception as error:  # noqa: BLE001  # compared, whatever it is
            return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return ""
