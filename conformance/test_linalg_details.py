"""Linear algebra beside its numbers: strides of results, as `view` sees them, and refusals."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch as reference

import flambeau
from conformance.side_by_side import attempt, compare

SHAPES = [(3, 3), (2, 3, 3), (1, 1), (4, 2), (2, 4), (3, 4, 2), (2, 1, 2, 4)]
SQUARE = [shape for shape in SHAPES if shape[-1] == shape[-2]]


def matrices(t: Any, shape: tuple[int, ...], turned: bool) -> Any:
    generator = reference.Generator().manual_seed(0)
    numbers = reference.randn(shape, dtype=reference.float64, generator=generator)
    given = t.tensor(numbers.tolist(), dtype=t.float64).reshape(shape)
    return given.mT.contiguous().mT if turned else given


def factors(t: Any, a: Any) -> Any:
    return {
        "qr": t.linalg.qr(a),
        "complete": t.linalg.qr(a, mode="complete"),
        "r": t.linalg.qr(a, mode="r"),
        "svd": t.linalg.svd(a),
        "thin": t.linalg.svd(a, full_matrices=False),
        "old svd": t.svd(a),
        "without vectors": t.svd(a, compute_uv=False),
        "lu": t.linalg.lu(a),
        "lu_factor": t.linalg.lu_factor(a),
        "geqrf": t.geqrf(a),
        "pinv": t.linalg.pinv(a),
        "lu_unpack": t.lu_unpack(*t.linalg.lu_factor(a)),
        "ormqr": t.ormqr(*t.geqrf(a), a),
    }


def least_squares(t: Any, a: Any) -> Any:
    b = a[..., :2]
    drivers = ("gels", "gelsy", "gelsd")
    return [t.linalg.lstsq(a, b, driver=d)[0] for d in drivers] + [t.linalg.lstsq(a, b[..., 0])[0]]


def square_factors(t: Any, a: Any) -> Any:
    hermitian = a @ a.mT + t.eye(a.shape[-1], dtype=a.dtype)
    return {
        "inv": t.linalg.inv(a),
        "powers": [t.linalg.matrix_power(a, n) for n in (-1, 0, 2)],
        "eig": t.linalg.eig(a),
        "eigh": t.linalg.eigh(hermitian),
        "cholesky": t.linalg.cholesky(hermitian),
        "upper": t.linalg.cholesky(hermitian, upper=True),
        "inverse of factor": t.cholesky_inverse(hermitian),
        "ldl": t.linalg.ldl_factor(hermitian),
        "exp": t.matrix_exp(a),
        "reflectors": t.linalg.householder_product(*t.geqrf(a)),
    }


def solutions(t: Any, a: Any) -> Any:
    warnings.simplefilter("ignore")  # old forms warn once per process
    b = a[..., :2]
    lu, pivots = t.linalg.lu_factor(a)
    return {
        "solve": t.linalg.solve(a, b),
        "from the right": t.linalg.solve(a, b.mT, left=False),
        "vector": t.linalg.solve(a, b[..., 0]),
        "triangular": t.linalg.solve_triangular(a, b, upper=True),
        "triangular from the right": t.linalg.solve_triangular(a, b.mT, upper=True, left=False),
        "old triangular": t.triangular_solve(b, a),
        "by factor": t.cholesky_solve(b, a),
        "by LU": t.linalg.lu_solve(lu, pivots, b),
        "by LU from the right": t.linalg.lu_solve(lu, pivots, b.mT, left=False),
        "by LDL": t.linalg.ldl_solve(*t.linalg.ldl_factor(a @ a.mT), b),
    }


def strides(value: Any) -> Any:
    """Shapes and strides in place of tensors: full bases may turn freely within null spaces."""
    if isinstance(value, (reference.Tensor, flambeau.Tensor)):
        return str(tuple(value.shape)), str(value.stride())
    if isinstance(value, dict):
        return {key: strides(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [strides(entry) for entry in value]
    return value


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factors_are_column_major(shape: tuple[int, ...], turned: bool) -> None:
    compare(lambda t: strides(factors(t, matrices(t, shape, turned))))


OUT = {
    "inv": lambda t, a, out: t.linalg.inv(a, out=out[0]),
    "cholesky": lambda t, a, out: t.linalg.cholesky(a @ a.mT, out=out[0]),
    "svd": lambda t, a, out: t.linalg.svd(a, out=out),
    "qr": lambda t, a, out: t.linalg.qr(a, out=out[:2]),
    "solve": lambda t, a, out: t.linalg.solve(a, a, out=out[0]),
    "solve_triangular": lambda t, a, out: t.linalg.solve_triangular(a, a, upper=True, out=out[0]),
    "pinv": lambda t, a, out: t.linalg.pinv(a, out=out[0]),
}


@pytest.mark.parametrize("size", [(0,), (3, 3)], ids=str)
@pytest.mark.parametrize("name", OUT)
def test_outputs_that_are_resized_take_the_strides_of_results(name: str, size: Any) -> None:
    def scenario(t: Any) -> Any:
        warnings.simplefilter("ignore")  # of old shapes that go
        out = [t.empty(size, dtype=t.float64) for _ in range(3)]
        OUT[name](t, matrices(t, (3, 3), False), out)
        return strides(out)

    compare(scenario)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_least_squares_lie_in_longer_columns(shape: tuple[int, ...], turned: bool) -> None:
    compare(lambda t: strides(least_squares(t, matrices(t, shape, turned))))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_square_factors_are_column_major(shape: tuple[int, ...], turned: bool) -> None:
    compare(lambda t: strides(square_factors(t, matrices(t, shape, turned))))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_solutions_are_column_major_from_the_left(shape: tuple[int, ...], turned: bool) -> None:
    compare(lambda t: strides(solutions(t, matrices(t, shape, turned))))


TYPES = ("int32", "int64", "float32", "float64", "complex64", "complex128")
INTO = {
    **OUT,
    "det": lambda t, a, out: t.linalg.det(a, out=out[0]),
    "old cholesky": lambda t, a, out: t.cholesky(a @ a.mT, out=out[0]),
    "cholesky_solve": lambda t, a, out: t.cholesky_solve(a, a, out=out[0]),
    "svdvals": lambda t, a, out: t.linalg.svdvals(a, out=out[0]),
    "eigvals": lambda t, a, out: t.linalg.eigvals(a, out=out[0]),
    "geqrf": lambda t, a, out: t.geqrf(a, out=out[:2]),
    "ormqr": lambda t, a, out: t.ormqr(*t.geqrf(a), a, out=out[0]),
    "householder_product": lambda t, a, out: t.linalg.householder_product(*t.geqrf(a), out=out[0]),
    "cond": lambda t, a, out: t.linalg.cond(a, out=out[0]),
    "norm": lambda t, a, out: t.linalg.norm(a, out=out[0]),
    "matrix_norm": lambda t, a, out: t.linalg.matrix_norm(a, out=out[0]),
    "multi_dot": lambda t, a, out: t.linalg.multi_dot([a, a, a], out=out[0]),
    "vecdot": lambda t, a, out: t.linalg.vecdot(a, a, out=out[0]),
    "inner": lambda t, a, out: t.inner(a, a, out=out[0]),
    "tensorinv": lambda t, a, out: t.linalg.tensorinv(a, ind=1, out=out[0]),
}


@pytest.mark.parametrize("name", INTO)
def test_outputs_of_another_type(name: str) -> None:
    def scenario(t: Any) -> Any:
        warnings.simplefilter("ignore")
        a = matrices(t, (3, 3), False)
        found = []
        for kind in TYPES:
            out = [t.empty(0, dtype=getattr(t, kind)) for _ in range(3)]
            result = attempt(lambda out=out: INTO[name](t, a, out) is None)
            found.append(result)
        return found

    compare(scenario)


def infinite(t: Any) -> Any:
    inf, nan = float("inf"), float("nan")
    rows = [
        [complex(inf, 0), 1j],
        [complex(-inf, inf), 1j],
        [1, complex(inf, nan)],
        [complex(inf, 1), complex(inf, 2)],
        [complex(0, inf), 1],
        [complex(-inf, 0), complex(-inf, 1)],
        [complex(nan, 0), 2],
    ]
    return t.tensor(rows, dtype=t.complex64)


SMALL = {
    "complex 0 to the 0": lambda t: t.vander(t.tensor([0j, 1 + 1j])),
    "powers of NaN": lambda t: t.vander(t.tensor([0.0, float("nan"), float("inf")])),
    "no columns": lambda t: t.vander(t.tensor([0.0, 2.0]), N=0),
    "powers of bytes": lambda t: t.vander(t.tensor([20, 3], dtype=t.uint8), N=4),
    "prepended rows": lambda t: t.diff(t.ones(2, 3), prepend=t.ones(3, 1)),
    "appended columns": lambda t: t.diff(t.ones(2, 3), dim=0, append=t.ones(1, 2)),
    "bytes into bools": lambda t: t.all(t.ones(3, dtype=t.uint8), out=t.empty(0, dtype=t.bool)),
    "bools into bytes": lambda t: t.any(t.ones(3), out=t.empty(0, dtype=t.uint8)),
    "truth of float": lambda t: t.all(t.ones(3), out=t.empty(0)),
    "positions in float": lambda t: t.nonzero(t.ones(3), out=t.empty(0)),
    "infinite areas": lambda t: t.trapezoid(t.tensor([1.0, float("-inf"), float("inf"), 2.0])),
    "sums of infinite exponentials": lambda t: t.logcumsumexp(infinite(t), 1),
    "condition of a singular matrix": lambda t: t.linalg.cond(t.diag(t.tensor([1.0, 1, 0])), "nuc"),
    "complex tolerance": lambda t: t.linalg.pinv(t.eye(2), rcond=t.full((), 1j)),
    "complex rtol": lambda t: t.linalg.pinv(t.eye(2), rtol=t.full((), 1j)),
    "complex atol": lambda t: t.linalg.matrix_rank(t.eye(2), atol=t.full((), 1j)),
    "most frequent into bytes": lambda t: t.mode(
        t.ones(3), out=(t.empty(0, dtype=t.uint8), t.empty(0, dtype=t.int64))
    ),
    "norm along an axis": lambda t: t.linalg.norm(t.ones(2, 3), axis=1),
    "norm of matrices along axes": lambda t: t.linalg.matrix_norm(t.ones(2, 3, 4), axis=(0, 2)),
    "tensors of another size": lambda t: t.linalg.tensorsolve(t.ones(2, 3, 6), t.ones(2, 2)),
    "tensors moved": lambda t: t.linalg.tensorsolve(t.ones(2, 3, 6), t.ones(2, 3), dims=(0,)),
    "extremes of NaN": lambda t: t.aminmax(t.tensor([[1.0, float("nan")], [2, 3]]), dim=1),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_print_of_numbers(name: str) -> None:
    compare(lambda t: strides(attempt(SMALL[name], t)), strides=True)
    compare(lambda t: attempt(SMALL[name], t))


def spread(t: Any, size: int, seed: int) -> Any:
    """A symmetric matrix with eigenvalues 1 to `size`."""
    generator = reference.Generator().manual_seed(seed)
    numbers = reference.randn(size, size, dtype=reference.float64, generator=generator)
    turned = reference.linalg.qr(numbers)[0]
    a = turned @ reference.diag(reference.arange(1.0, size + 1, dtype=reference.float64)) @ turned.T
    return t.tensor(a.tolist(), dtype=t.float64)


@pytest.mark.parametrize("largest", [True, False])
def test_extreme_eigenpairs(largest: bool) -> None:
    def scenario(t: Any) -> Any:
        a, b = spread(t, 12, 0), spread(t, 12, 1)
        plain = t.lobpcg(a, k=3, largest=largest, tol=1e-9)
        batch = t.lobpcg(t.stack([a, b]), k=2, largest=largest, tol=1e-9)
        other = t.lobpcg(a, k=2, B=b, largest=largest, tol=1e-9)
        near = t.lobpcg(a, X=t.eye(12, dtype=t.float64)[:, :3], iK=a.inverse(), largest=largest)
        pairs = [plain, batch, other, near]
        return [(values, vectors.abs() if values is not near[0] else vectors.shape)
                for values, vectors in pairs]  # fmt: skip

    compare(scenario, rtol=1e-5, atol=1e-5)


def test_gradients_of_extreme_eigenpairs() -> None:
    def scenario(t: Any) -> Any:
        warnings.simplefilter("ignore")
        a = spread(t, 9, 2).requires_grad_()
        values, vectors = t.lobpcg(a, k=2, tol=1e-12)
        loss = values.sum() + (vectors.square()[:, 0] * t.arange(9.0)).sum()
        (grad,) = t.autograd.grad(loss, a, create_graph=True)
        return grad, t.autograd.grad(grad.square().sum(), a)

    compare(scenario, rtol=1e-5, atol=1e-7)


WRONG_SEARCHES = {
    "too small": lambda t, a: t.lobpcg(a, k=4),
    "not square": lambda t, a: t.lobpcg(a[:4]),
    "other size": lambda t, a: t.lobpcg(a, B=a[:4, :4]),
    "guess": lambda t, a: t.lobpcg(a, X=a[:8, :2]),
    "gradient of B": lambda t, a: t.lobpcg(a, B=a.clone().requires_grad_())[0].sum().backward(),
}


@pytest.mark.parametrize("name", WRONG_SEARCHES)
def test_searches_for_eigenpairs_that_are_refused(name: str) -> None:
    compare(lambda t: attempt(WRONG_SEARCHES[name], t, spread(t, 9, 3)))


def test_private_places_of_collating() -> None:
    for t in (flambeau, reference):
        found = t.utils.data._utils.collate.default_collate([{"a": 1}, {"a": 2}])
        assert found["a"].tolist() == [1, 2]
        pinned = t.utils.data._utils.pin_memory.pin_memory
        assert callable(pinned)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", ["svd_lowrank", "pca_lowrank"])
def test_low_rank_of_sparse_matrices(name: str, wide: bool) -> None:
    def scenario(t: Any) -> Any:
        warnings.simplefilter("ignore")  # of sparse layouts
        a = matrices(t, (9, 3), False) @ matrices(t, (2, 3, 6), False)[0]
        a = t.where(a.abs() < 0.3, 0.0, a)
        a = a.mT.contiguous() if wide else a
        found = [getattr(t, name)(x, q=6, niter=30) for x in (a, a.to_sparse())]
        return [(values[:3], left.shape, right.shape) for left, values, right in found]

    compare(scenario, rtol=1e-5, atol=1e-5)


def test_preferred_libraries() -> None:
    def scenario(t: Any) -> Any:
        cuda = t.backends.cuda
        names = ("default", "cublaslt", "cublas", "nothing", 3, None)
        choices = (cuda.preferred_linalg_library, cuda.preferred_blas_library)
        return [str(attempt(choose, name)) for choose in choices for name in names]

    compare(scenario)


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_gradients_of_quantiles_with_nan(name: str, interpolation: str) -> None:
    def scenario(t: Any) -> Any:
        nan = float("nan")
        x = t.tensor([[nan, 1.0, 2], [3, 4, 5], [nan, nan, nan], [1, nan, 0]], requires_grad=True)
        q = t.tensor([0.2, 0.7])
        found = getattr(t, name)(x, q, 1, interpolation=interpolation)
        found.sum().backward()
        return found, x.grad

    compare(scenario)


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_logarithms_of_one_and_something_small(kind: str) -> None:
    numbers = [1e-19, -1e-8 + 1e-9j, 1e-10 + 1e-5j, 1e19 + 1e18j, -1 + 0j, -2 + 1e-3j, 0.3 - 0.4j]

    def scenario(t: Any) -> Any:
        found = t.log1p(t.tensor(numbers, dtype=getattr(t, kind)))
        return found.real.tolist(), found.imag.tolist()

    compare(scenario, rtol=1e-5, atol=0)


def test_sums_of_infinite_complex_exponentials() -> None:
    inf, nan = float("inf"), float("nan")
    parts = [complex(a, b) for a in (0.5, inf, -inf, nan) for b in (0, 1, inf, nan)]

    def scenario(t: Any) -> Any:
        x = t.tensor([a for a in parts for _ in parts])
        y = t.tensor(parts * len(parts))
        found = [t.logaddexp(x, y), t.logcumsumexp(t.stack([x, y]), 0)]
        return [(z.real, z.imag) for z in found]

    compare(scenario, rtol=1e-4, atol=1e-5)


def test_histogram_of_no_dims() -> None:
    compare(lambda t: attempt(lambda: t.histogramdd(t.zeros(0, 2), [3, 3])[0]))


@pytest.mark.parametrize("rcond", [-5.0, 0.0, 0.4, 1.0, 2.0])
@pytest.mark.parametrize("driver", ["gelsd", "gelss"])
def test_tolerances_of_least_squares(driver: str, rcond: float) -> None:
    def scenario(t: Any) -> Any:
        a = matrices(t, (2, 4, 3), False)
        found = t.linalg.lstsq(a, a[..., :2] + 1, rcond=rcond, driver=driver)
        return found.solution, found.rank, found.residuals

    compare(scenario)


@pytest.mark.parametrize("zeros", ["first column", "last column", "row", "all", "second matrix"])
@pytest.mark.parametrize("wide", [False, True])
def test_least_squares_of_matrices_without_full_rank(zeros: str, wide: bool) -> None:
    """By QR; what is not exactly 0 on the triangle's diagonal is not noticed."""

    def scenario(t: Any) -> Any:
        a = matrices(t, (2, 5, 3), False).clone()
        part = {"first column": a[..., 0], "last column": a[..., 2], "row": a[:, 1], "all": a,
                "second matrix": a[1, :, 1]}[zeros]  # fmt: skip
        part.zero_()
        a = a.mT if wide else a
        return attempt(lambda: t.linalg.lstsq(a, a[..., :2] + 1, driver="gels").solution)

    compare(scenario)


VALUES = {
    "svd": lambda t, x: t.linalg.svd(x)[1],
    "thin svd": lambda t, x: t.linalg.svd(x, full_matrices=False)[1],
    "svdvals": lambda t, x: t.linalg.svdvals(x),
    "eigh": lambda t, x: t.linalg.eigh(x)[0],
    "eigvalsh": lambda t, x: t.linalg.eigvalsh(x),
    "eig": lambda t, x: t.linalg.eig(x)[0].real,
    "eigvals": lambda t, x: t.linalg.eigvals(x).real,
    "nuclear norm": lambda t, x: t.linalg.matrix_norm(x, "nuc"),
    "spectral norm": lambda t, x: t.linalg.norm(x, 2),
    "cond": lambda t, x: t.linalg.cond(x),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("written", [False, True])
def test_gradients_of_values_do_not_need_the_operand_or_different_values(
    name: str, written: bool
) -> None:
    """Equal values have a gradient as long as no vectors are used, though theirs have none; and
    the operand may be written to, since the vectors are what is saved."""

    def gradient(t: Any) -> Any:
        leaf = t.eye(3, dtype=t.float64).mul(2).requires_grad_()
        matrix = leaf * 1
        loss = VALUES[name](t, matrix).sum()
        if written:
            matrix.mul_(3)
        loss.backward()
        return leaf.grad

    compare(gradient)


@pytest.mark.parametrize("driver", [None, "gelsd", "gelsy", "gels"])
@pytest.mark.parametrize("repeated", [(1, 5, 3), (5, 3), (2, 5, 3)])
def test_ranks_are_of_matrices_not_of_right_sides(
    driver: str | None, repeated: tuple[int, ...]
) -> None:
    def shapes(t: Any) -> Any:
        matrix = matrices(t, repeated, False)
        found = t.linalg.lstsq(matrix, t.ones(2, 5, 2, dtype=t.float64), driver=driver)
        return [list(part.shape) for part in found]

    compare(shapes)
