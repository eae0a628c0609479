"""Functions where careless formulas overflow or cancel, in every float type: values and gradients.

Each row is computed by PyTorch and by flambeau from the same numbers, and both are compared with
a reference in extended precision (values: NumPy's longdouble; gradients: PyTorch in float64). Where
a result is infinite or NaN, it is so in both; elsewhere flambeau's error in units in the last place
is not larger than PyTorch's, or than the rounding that any implementation has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau

INF = math.inf
Arrays = list[np.ndarray]
DTYPES = ("float16", "bfloat16", "float32", "float64")
SAME = 1.1
"""Errors that are this close come of the same formula."""
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 5e-324}


CIRCULAR = 2.0**16
"""Granted to gradients in float64: where the reference is PyTorch's own, its errors are in it. The
same formulas are held to the digit in the narrower types."""


@dataclass(frozen=True)
class Row:
    """A function of a library and tensors, and the same in extended precision."""

    name: str
    call: Callable[..., Any]
    exact: Callable[..., np.ndarray]
    cases: list[Arrays]
    ulp: float = 1.5
    """Error that is granted whatever PyTorch's is."""
    gradient: bool = True
    gradient_ulp: float = 4.0
    slope: Callable[..., np.ndarray] | None = None
    """The gradient in extended precision, of the input and what gradients begin with; PyTorch's in
    float64 if it is not given."""
    size: float = 0.0
    gradient_size: float | Callable[..., Arrays] = 0.0
    """What results and gradients are differences of, where that is larger than they are; a function
    of the inputs where it differs between them."""

    def __str__(self) -> str:
        return self.name


def array(*values: Any) -> np.ndarray:
    return np.array(values, np.float64)


random = np.random.default_rng(0)
LINE = array(0.0, -0.0, 1e-6, -1e-6, 3e-4, -3e-4, 0.1, -0.1, 0.5, -0.5, 1, -1, 3.5, -3.5, 11, -11,
             17, -17, 20.5, -20.5, 40, -40, 88, -88, 89, -89, 104, -104, 700, -700, 746, -746,
             1000, -1000, 3e4, -3e4)  # fmt: skip
EDGES = np.concatenate([LINE, array(INF, -INF, math.nan)])
LOGITS = np.stack([
    array(1000, 0, -1000, 999), array(0, 0, 0, 0), array(-1000, -1001, -1002, -1003),
    array(1e-3, -1e-3, 2e-3, 0), array(-INF, 0, -INF, 1), array(88, 89, 90, 91),
    array(3e4, -3e4, 0, 3e4), array(30, 0, 0, 0),
])  # fmt: skip
MASKED = np.stack([LOGITS[4], array(-INF, -INF, -INF, -INF), array(INF, 0, 1, 2)])
NORMAL = random.standard_normal((6, 40))
OFFSET = 1000 + NORMAL / 8
TARGETS = [3, 0, 0, 2, 3, 0, 1, 1]
LARGE = np.stack([array(2e4, 2e4, 1e4, 3e4), array(1e-3, 2e-3, -1e-3, 0), array(0, 0, 0, 0)])
POSITIVE = np.abs(NORMAL) + 0.1
LONG = random.standard_normal((8, 9000))
LONG_OFFSET = 1000 + LONG / 8
LONG_LOGITS = np.stack([30 * LONG[0], 900 + LONG[1], LONG[2], 1000 * LONG[3]])
"""Rows that compiled kernels work on, not NumPy."""


# ---- in extended precision


def exact_logsumexp(x: np.ndarray, axis: int = -1) -> np.ndarray:
    top = x.max(axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    return np.log(np.exp(x - top).sum(axis)) + top.squeeze(axis)


def exact_log_softmax(x: np.ndarray) -> np.ndarray:
    return x - exact_logsumexp(x)[..., None]


def exact_softplus(x: np.ndarray) -> np.ndarray:
    return np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, 21))))  # PyTorch's threshold


def exact_logsigmoid(x: np.ndarray) -> np.ndarray:
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def exact_sigmoid(x: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def exact_bce(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))


def exact_cross_entropy(x: np.ndarray) -> np.ndarray:
    return -exact_log_softmax(x)[np.arange(len(x)), TARGETS[: len(x)]]


def exact_variance(x: np.ndarray) -> np.ndarray:
    return ((x - x.mean(1, keepdims=True)) ** 2).sum(1) / (x.shape[1] - 1)


def exact_norm(x: np.ndarray) -> np.ndarray:
    return np.sqrt((x * x).sum(1))


def exact_cosine(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    lengths = np.maximum(exact_norm(x), 1e-8) * np.maximum(exact_norm(y), 1e-8)
    return (x * y).sum(1) / lengths


def cosine_terms(x: np.ndarray, y: np.ndarray) -> Arrays:
    """The gradients are differences of vectors that are this long. For equal rows they are 0, but
    what is left of rounded differences is not: in PyTorch neither, in five rows of six."""
    return [1 / np.maximum(exact_norm(side), 1e-8)[:, None] for side in (x, y)]


def exact_logcumsumexp(x: np.ndarray) -> np.ndarray:
    return np.stack([exact_logsumexp(x[:, : k + 1]) for k in range(x.shape[1])], 1)


def exact_sinc(x: np.ndarray) -> np.ndarray:
    angle = np.longdouble("3.14159265358979323846264338327950288") * x
    return np.where(x == 0, 1, np.sin(angle) / np.where(x == 0, 1, angle))


def exact_xlogy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where((x == 0) & ~np.isnan(y), 0, x * np.log(y))


def exact_layer_norm(x: np.ndarray) -> np.ndarray:
    spread = x - x.mean(1, keepdims=True)
    return spread / np.sqrt((spread * spread).mean(1, keepdims=True) + 1e-5)


def layer_norm_slope(x: np.ndarray, grad: np.ndarray) -> np.ndarray:
    spread = x - x.mean(1, keepdims=True)
    scale = np.sqrt((spread * spread).mean(1, keepdims=True) + 1e-5)
    along = (grad * spread / scale).mean(1, keepdims=True)
    return (grad - grad.mean(1, keepdims=True) - spread / scale * along) / scale


def variance_slope(x: np.ndarray, grad: np.ndarray) -> np.ndarray:
    return 2 * grad[:, None] * (x - x.mean(1, keepdims=True)) / (x.shape[1] - 1)


def softmax_slope(x: np.ndarray, grad: np.ndarray) -> np.ndarray:
    share = np.exp(exact_log_softmax(x))
    return share * (grad - (share * grad).sum(-1, keepdims=True))


def pairs(first: Any, second: Any) -> Arrays:
    """Every element of the one with every element of the other."""
    left, right = np.meshgrid(first, second, indexing="ij")
    return [left.ravel().copy(), right.ravel().copy()]


SIDES = array(0.0, -0.0, 1, -1, 3, -4, 1e-4, 1e4, -1e4)
BOTH = pairs(SIDES, SIDES)
TARGET_OF_BCE = np.resize(array(0, 1, 0.5, 0.25), LINE.shape)

ROWS = [
    Row("log_softmax", lambda t, x: t.log_softmax(x, -1), exact_log_softmax,
        [[LOGITS], [LONG_LOGITS]], 10.0, gradient_size=1.0),
    Row("softmax", lambda t, x: t.softmax(x, -1), lambda x: np.exp(exact_log_softmax(x)),
        [[LOGITS], [LONG_LOGITS]], 3.0, slope=softmax_slope, gradient_size=1.0),
    Row("softmax of masked rows", lambda t, x: t.softmax(x, -1),
        lambda x: np.exp(exact_log_softmax(x)), [[MASKED]], 2.0),
    Row("log_softmax of masked rows", lambda t, x: t.log_softmax(x, -1), exact_log_softmax,
        [[MASKED]]),
    Row("logsumexp", lambda t, x: t.logsumexp(x, -1), exact_logsumexp,
        [[LOGITS], [LONG_LOGITS]]),
    Row("logcumsumexp", lambda t, x: t.logcumsumexp(x, -1), exact_logcumsumexp, [[LOGITS]], 3.0,
        gradient=False),
    Row("logaddexp", lambda t, x, y: t.logaddexp(x, y), np.logaddexp,
        [[LINE, LINE[::-1].copy()], pairs(array(0, 1000, -1000, INF, -INF), array(0, 999, -INF))]),
    Row("logaddexp2", lambda t, x, y: t.logaddexp2(x, y), np.logaddexp2,
        [[LINE, LINE[::-1].copy()]], 2.0),
    Row("softplus", lambda t, x: t.nn.functional.softplus(x), exact_softplus, [[EDGES]]),
    Row("sigmoid", lambda t, x: t.sigmoid(x), exact_sigmoid, [[EDGES]], 2.0),
    Row("logsigmoid", lambda t, x: t.nn.functional.logsigmoid(x), exact_logsigmoid, [[EDGES]], 2.0),
    Row("log1p", lambda t, x: t.log1p(x), np.log1p, [[np.abs(EDGES)], [-LINE[:10] / 2]]),
    Row("expm1", lambda t, x: t.expm1(x), np.expm1, [[EDGES]]),
    Row("tanh", lambda t, x: t.tanh(x), np.tanh, [[EDGES]], 2.0),
    Row("log", lambda t, x: t.log(x), np.log, [[np.abs(EDGES)]]),
    Row("sinc", lambda t, x: t.sinc(x), exact_sinc, [[array(0, 1e-6, -1e-3, 0.3, -0.7, 1.5, 7.3)]],
        2.0, gradient_ulp=16),
    Row("cross_entropy",
        lambda t, x: t.nn.functional.cross_entropy(x, t.tensor(TARGETS), reduction="none"),
        exact_cross_entropy, [[LOGITS]], gradient_ulp=8),
    Row("mean cross_entropy",
        lambda t, x: t.nn.functional.cross_entropy(x, t.tensor(TARGETS[:4])),
        lambda x: np.asarray(exact_cross_entropy(x).mean()), [[LOGITS[:4]]], 2.0, gradient_ulp=8),
    Row("binary_cross_entropy_with_logits",
        lambda t, x, y: t.nn.functional.binary_cross_entropy_with_logits(x, y, reduction="none"),
        exact_bce, [[LINE, TARGET_OF_BCE]], 2.0),
    Row("vector_norm", lambda t, x: t.linalg.vector_norm(x, dim=1), exact_norm,
        [[NORMAL], [LARGE], [LONG], [1e-3 * LONG], [LONG_OFFSET]], 3.0),
    Row("norm", lambda t, x: x.norm(dim=1), exact_norm, [[NORMAL], [LARGE]], 2.0),
    Row("normalize", lambda t, x: t.nn.functional.normalize(x, dim=1),
        lambda x: x / np.maximum(exact_norm(x), 1e-12)[:, None], [[NORMAL], [LARGE[:2]]], 2.0,
        gradient_ulp=16),
    Row("cosine_similarity", lambda t, x, y: t.nn.functional.cosine_similarity(x, y), exact_cosine,
        [[NORMAL, NORMAL[::-1].copy()], [LARGE, LARGE[::-1].copy()]], 3.0, gradient_ulp=16,
        gradient_size=cosine_terms),
    Row("cosine_similarity of equals", lambda t, x, y: t.nn.functional.cosine_similarity(x, y),
        exact_cosine, [[NORMAL, NORMAL], [LARGE[:2], LARGE[:2]]], 3.0, gradient_ulp=16,
        gradient_size=cosine_terms),
    Row("var of a large mean", lambda t, x: t.var(x, 1), exact_variance,
        [[NORMAL], [OFFSET], [LONG], [LONG_OFFSET]], 3.0, slope=variance_slope),
    Row("std of a large mean", lambda t, x: t.std(x, 1), lambda x: np.sqrt(exact_variance(x)),
        [[NORMAL], [OFFSET], [LONG], [LONG_OFFSET]], 3.0),
    Row("std of a constant", lambda t, x: t.std(x, 1), lambda x: np.sqrt(exact_variance(x)),
        [[np.full((2, 7), 0.125)]]),
    Row("mean", lambda t, x: t.mean(x, 1), lambda x: x.mean(1),
        [[OFFSET], [LARGE], [LONG_OFFSET]], 3.0),
    Row("sum", lambda t, x: t.sum(x, 1), lambda x: x.sum(1),
        [[POSITIVE], [OFFSET], [LONG_OFFSET]], 3.0),
    Row("layer_norm", lambda t, x: t.nn.functional.layer_norm(x, (x.shape[1],)), exact_layer_norm,
        [[NORMAL], [OFFSET], [LONG], [LONG_OFFSET]], 3.0, gradient_ulp=16,
        slope=layer_norm_slope, size=1.0),
    Row("xlogy", lambda t, x, y: t.xlogy(x, y), exact_xlogy,
        [pairs(array(0, 1, -2, 1e-3), array(0, 1, 2, 1e-4, INF, math.nan))]),
    Row("xlog1py", lambda t, x, y: t.special.xlog1py(x, y), lambda x, y: exact_xlogy(x, 1 + y),
        [pairs(array(0, 1, -2), array(0, -1, 2, 1e-3))]),
    Row("atan2", lambda t, x, y: t.atan2(x, y), np.arctan2, [BOTH]),
    Row("hypot", lambda t, x, y: t.hypot(x, y), np.hypot, [BOTH, [LARGE[0], LARGE[1]]]),
    Row("pow", lambda t, x, y: t.pow(x, y), np.power,
        [pairs(array(0.0, 1, 2, 0.5), array(0, 1, 2, 0.5, -1, 3))], 2.0),
    Row("pow by a number", lambda t, x: t.stack([x**k for k in (0, 1, 2, 3, 0.5)]),
        lambda x: np.stack([x**k for k in (0, 1, 2, 3, 0.5)]), [[array(0, 1, 2, 0.25, 100)]]),
    Row("sqrt at 0", lambda t, x: x.sqrt(), np.sqrt, [[array(0, 1e-4, 4)]]),
    Row("kl_div of logs",
        lambda t, x, y: t.nn.functional.kl_div(x, y, reduction="none", log_target=True),
        lambda x, y: np.exp(y) * (y - x), [[-POSITIVE, -POSITIVE[::-1].copy()]], 3.0),
]  # fmt: skip


# ---- comparison


def in_dtype(library: Any, values: np.ndarray, dtype: str) -> Any:
    """A tensor with these numbers, rounded. PyTorch rounds to 16 bits by way of float32; numbers
    that are float32 already are rounded once in both libraries."""
    if dtype != "float64":
        values = values.astype(np.float32)
    tensor = library.tensor(values.tolist(), dtype=library.float64)
    return tensor.to(getattr(library, dtype))


def doubles(tensor: Any) -> np.ndarray:
    """The values of a tensor in float64."""
    return np.array(tensor.detach().double().numpy())


def weights_for(shape: tuple[int, ...]) -> np.ndarray:
    """What gradients begin with: different, and exact in every type."""
    count = int(np.prod(shape))
    return (1 + np.arange(count) % 4 / 4).reshape(shape)


def run(library: Any, row: Row, values: Arrays, dtype: str) -> tuple[np.ndarray, Arrays, str]:
    """The result, the gradients of the inputs, and the type of the result."""
    tensors = [in_dtype(library, value, dtype) for value in values]
    if row.gradient:
        tensors = [tensor.requires_grad_() for tensor in tensors]
    result = row.call(library, *tensors)
    grads: Arrays = []
    if row.gradient:
        result.backward(in_dtype(library, weights_for(tuple(result.shape)), str(result.dtype)[6:]))
        grads = [doubles(tensor.grad) for tensor in tensors]
    return doubles(result), grads, str(result.dtype)


def ulps(found: np.ndarray, exact: np.ndarray, size: np.ndarray, dtype: str) -> np.ndarray:
    """Errors in units in the last place of `size`; 0 where a number is not finite."""
    with np.errstate(all="ignore"):
        unit = np.maximum(np.abs(size) * EPS[dtype], SMALLEST[dtype])
        error = np.abs(found - exact) / unit
    return np.where(np.isfinite(found) & np.isfinite(exact), error, 0).astype(np.float64)


def largest(exact: np.ndarray, dtype: str) -> np.ndarray:
    """What the error of a gradient is compared with: the largest number of its row, for rows
    are added up; and the largest of all where the reference itself is in float64."""
    sizes = np.where(np.isfinite(exact), np.abs(exact), 0)
    if dtype == "float64":
        return sizes.max(keepdims=True)
    return sizes.max(-1, keepdims=True) if exact.ndim > 1 else sizes


def assert_stable(ours: np.ndarray, torchs: np.ndarray, exact: np.ndarray, size: np.ndarray,
                  dtype: str, granted: float) -> None:  # fmt: skip
    """The same infinities and NaNs as PyTorch, and no larger errors."""
    assert ours.shape == torchs.shape
    odd = ~np.isfinite(ours) | ~np.isfinite(torchs)
    np.testing.assert_array_equal(ours[odd], torchs[odd])
    mine, theirs = ulps(ours, exact, size, dtype), ulps(torchs, exact, size, dtype)
    if (mine <= max(SAME * theirs.max(initial=0), granted)).all():
        return
    place = np.unravel_index(mine.argmax(), mine.shape)
    raise AssertionError(
        f"at {tuple(map(int, place))}: {ours[place]}, PyTorch has {torchs[place]}, it is "
        f"{exact[place]}: {mine[place]:.3g} ulp, PyTorch {theirs[place]:.3g} (at most "
        f"{theirs.max():.3g})"
    )


def gradients_of(row: Row, values: Arrays) -> Arrays:
    """As exact as they are known."""
    if row.slope is None:
        return run(reference, row, values, "float64")[1]
    wide = [value.astype(np.longdouble) for value in values]
    return [row.slope(*wide, weights_for(row.exact(*wide).shape))]


def gradient_terms(row: Row, values: Arrays) -> list[Any]:
    """`gradient_size` for every input that has a gradient."""
    if not row.gradient:
        return []
    if callable(row.gradient_size):
        return list(row.gradient_size(*values))
    return [row.gradient_size] * len(values)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_values_and_gradients(row: Row, dtype: str) -> None:
    for values in row.cases:
        ours, our_grads, our_type = run(flambeau, row, values, dtype)
        torchs, torch_grads, torch_type = run(reference, row, values, dtype)
        assert our_type == torch_type
        rounded = [doubles(in_dtype(reference, value, dtype)) for value in values]
        with np.errstate(all="ignore"):
            exact = row.exact(*[value.astype(np.longdouble) for value in rounded])
        exact = np.asarray(exact)
        size = np.maximum(np.abs(exact), row.size)
        assert_stable(ours, torchs, exact, size, dtype, row.ulp)
        exact_grads = gradients_of(row, rounded)
        terms = gradient_terms(row, rounded)
        grads = zip(our_grads, torch_grads, exact_grads, terms, strict=True)
        for ours, torchs, exact, term in grads:
            circular = dtype == "float64" and row.slope is None
            granted = CIRCULAR if circular else row.gradient_ulp
            size = np.maximum(largest(exact, dtype), term)
            assert_stable(ours, torchs, exact, size, dtype, granted)
