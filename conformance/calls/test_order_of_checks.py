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


MATRICES = ((), (3,), (2, 3), (3, 3), (2, 3, 3), (0, 3))
PRODUCTS = {
    "addmm": lambda t, a, b, c: t.addmm(a, b, c),
    "baddbmm": lambda t, a, b, c: t.baddbmm(a, b, c),
    "addbmm": lambda t, a, b, c: t.addbmm(a, b, c),
    "addmv": lambda t, a, b, c: t.addmv(a, b, c),
    "addr": lambda t, a, b, c: t.addr(a, b, c),
    "group_norm": lambda t, a, b, c: t.group_norm(a, 1, b, c),
    "layer_norm": lambda t, a, b, c: t.layer_norm(a, b.shape, b, c),
    "rms_norm": lambda t, a, b, c: t.rms_norm(a, b.shape, c),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_three_tensors(name: str) -> None:
    """Types and sizes of three operands."""
    for shapes in itertools.product(MATRICES, repeat=3):
        for dtype in ("float32", "int32", "float16"):
            kinds = ("float32", dtype, "float32")
            made = lambda t: [_ones(t, s, d) for s, d in zip(shapes, kinds, strict=True)]  # noqa: B023, E731
            _compare(lambda t: PRODUCTS[name](t, *made(t)), shapes, dtype)  # noqa: B023


@pytest.mark.parametrize("name", ["mv", "mm", "bmm", "cdist", "inner"])
def test_two_tensors(name: str) -> None:
    for first, second in itertools.product(MATRICES, repeat=2):
        for dtype in ("float32", "int32"):
            _compare(
                lambda t: getattr(t, name)(_ones(t, first, dtype), _ones(t, second, "float32")),  # noqa: B023
                first, second, dtype,
            )  # fmt: skip


GRIDS = ((), (3,), (2, 3), (2, 2, 3), (1, 2, 4, 4), (1, 4, 4, 2), (2, 2, 3, 4, 3))


@pytest.mark.parametrize("name", ["grid_sampler", "grid_sampler_2d", "grid_sampler_3d"])
def test_grids(name: str) -> None:
    for shapes in itertools.product(GRIDS, repeat=2):
        for dtype in ("float32", "float64"):
            _compare(
                lambda t: getattr(t, name)(
                    t.ones(shapes[0]), t.ones(shapes[1], dtype=getattr(t, dtype)), 0, 0, True),  # noqa: B023
                shapes, dtype,
            )  # fmt: skip


POOLED = ((), (3,), (2, 3), (2, 3, 3), (0, 3, 3), (2, 2, 3, 3), (1, 2, 3, 3, 3), (2, 0, 3, 3))
POOLS = ("max_pool2d", "max_pool3d", "avg_pool2d", "avg_pool3d")
ADAPTIVE = ("adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool2d",
            "adaptive_max_pool3d")  # fmt: skip


@pytest.mark.parametrize("name", POOLS)
def test_pools(name: str) -> None:
    for shape, kernel, stride, padding in itertools.product(
        POOLED, (2, 0, -1, (2, 2, 2, 2)), (None, 0, 1), (0, 3, -1)
    ):
        _compare(
            lambda t: getattr(t.nn.functional, name)(t.ones(shape), kernel, stride, padding),  # noqa: B023
            shape, kernel, stride, padding,
        )  # fmt: skip


@pytest.mark.parametrize("name", ADAPTIVE)
def test_adaptive_pools(name: str) -> None:
    for shape, output in itertools.product(POOLED, (1, 0, -1, (1, 1), (1,), (2, 2, 2))):
        _compare(lambda t: getattr(t.nn.functional, name)(t.ones(shape), output), shape, output)  # noqa: B023


WRITES = {
    "scatter_add_": lambda t, x, d, i, s: x.scatter_add_(d, i, s),
    "scatter_reduce": lambda t, x, d, i, s: x.scatter_reduce(d, i, s, "no"),
    "index_add_": lambda t, x, d, i, s: x.index_add_(d, i, s),
    "index_fill_": lambda t, x, d, i, s: x.index_fill_(d, i, 1e20),
    "index_reduce_": lambda t, x, d, i, s: x.index_reduce_(d, i, s, "no"),
    "cumprod_": lambda t, x, d, i, s: x.cumprod_(d),
}  # fmt: skip
SAME_RANK = ((2, 3), (1, 2), (2, 0))


@pytest.mark.parametrize("name", WRITES)
def test_writes_into_what_overlaps(name: str) -> None:
    """What is wrong with the arguments comes before what is wrong with the memory written to."""
    for index, source, dim, dtype, kind in itertools.product(
        ((2,), (1, 2), (0,)), SAME_RANK, (0, 1, 2, -3), ("float32", "int64"), ("int64", "float32")
    ):

        def call(t: Any) -> Any:
            target = t.ones(2, 1).expand(2, 3)
            return WRITES[name](
                t, target, dim, t.zeros(index, dtype=getattr(t, kind)),  # noqa: B023
                t.ones(source, dtype=getattr(t, dtype)),  # noqa: B023
            )  # fmt: skip

        _compare(call, index, source, dim, dtype, kind)


def test_products_with_reflectors() -> None:
    for a, tau, other, left in itertools.product(
        ((3,), (3, 3), (4, 3), (2, 3, 3)),
        ((), (3,), (2,), (2, 3), (3, 3), (5,)),
        ((3,), (3, 3), (4, 2), (2, 3, 3), (2, 4, 4)),
        (True, False),
    ):
        _compare(lambda t: t.ormqr(t.ones(a), t.ones(tau), t.ones(other), left), a, tau, other)  # noqa: B023


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_results_in_rows(name: str) -> None:
    """Of permuted tensors too, small and large."""
    for shape in ((3, 3), (4, 4, 3), (2, 3, 4, 4), (64, 64)):
        for order in itertools.permutations(range(len(shape))):
            for dtype in ("float32", "float64", "bfloat16"):
                found = [
                    getattr(t.nn.functional, name)(
                        t.ones(shape, dtype=getattr(t, dtype)).permute(order), 1).stride()
                    for t in (flambeau, reference)
                ]  # fmt: skip
                assert found[0] == found[1], (shape, order, dtype)


WORDS = (
    "t.histogram(t.ones(3), t.ones(2, 2))",
    "t.histogram(t.ones(3), 0)",
    "t.histogram(t.ones(3), 2, range=[1.0])",
    "t.histogram(t.ones(3), t.ones(2).double())",
    "t.histogramdd(t.ones(3, 2), [t.ones(2), t.ones(2).double()])",
    "t.histogramdd(t.ones(3), 2)",
    "t.histogramdd(t.ones(3, 2), [t.ones(2)])",
    "t.histogramdd(t.ones(3, 2), 2, range=[1.0, 2.0])",
    "t.meshgrid(t.ones(2, 2), t.ones(3).long(), indexing='U')",
    "t.fill(t.ones(3), t.ones(2))",
    "t.meshgrid(t.ones(2, 2), t.ones(3), indexing='U')",
    "t.ones(3).masked_scatter(t.ones(3).bfloat16(), t.ones(3))",
    "t.ones(3).masked_fill(t.ones(3).half(), 1)",
    "t.ones(()).split([1])",
    "t.ones(2, 3).split([1], -1)",
    "t.group_norm(t.ones(2, 4), 1, bias=t.ones(2, 4))",
    "t.signal.windows.blackman(-1)",
    "t.signal.windows.exponential(-1, tau=-1.0)",
    "t.signal.windows.general_cosine(-1, a=[])",
    "t.cdist(t.ones(2, 2), t.ones(2, 2), 2, [1])",
    "t.ones(2, 3, 4).bfloat16().expand(2)",
    "t.ones(2, 3).bool().expand(2)",
    "t.stft(t.ones(4).bfloat16(), 9, hop_length=0)",
    "t.ones(2, 3).hsplit(0)",
    "t.narrow(t.ones(3), 0, t.ones(2), -1)",
    "t.ones(2).narrow_copy(0, 4, -1)",
    "t.trapezoid(t.ones(2).bool(), t.ones(2).bool())",
    "t.lu_unpack(t.ones(3), t.ones(3))",
    "t.embedding_renorm_(t.ones(1, 2, 4), t.zeros(3).long(), 1.0, 2.0)",
    "t.embedding_renorm_(t.ones(2, 4), t.zeros(3), 1.0, 2.0)",
    "t.quantile(t.ones(3), t.ones(2, 2), interpolation='ij')",
    "t.instance_norm(t.ones(3), None, None, None, None, True, 0.1, 0.1, False)",
    "t.cov(t.zeros(0), fweights=t.zeros(0).long())",
    "t.nn.functional.unfold(t.ones(2, 1), 1)",
    "t.linspace(t.ones(2), t.ones(()), 1)",
    "t.linspace(t.ones(2), 1j, 1, pin_memory=True)",
    "t.nn.functional.max_pool2d(2, 3)",
    "t.conv2d(t.ones(3), 2)",
    "t.ones(0, 3).cummax(2)",
    "t.ones(0).cummin(1)",
    "t.linalg.matrix_rank(t.ones(2, 0), atol=t.ones(2, 0))",
)


@pytest.mark.parametrize("text", WORDS)
def test_words(text: str) -> None:
    _compare(lambda t: eval(text, {"t": t}))  # noqa: S307


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
