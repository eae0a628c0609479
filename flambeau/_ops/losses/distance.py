"""Distances and similarities of vectors, and the losses made of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core.programs import EAGER
from flambeau._ops.launching.modules import launcher
from flambeau._ops.launching.precision import narrow, widen
from flambeau._ops.losses.elementwise import NONE, reduced, reduction_code, reduction_of
from flambeau._ops.products.blas import matmul
from flambeau._ops.reductions.norms import vector_norm
from flambeau._ops.reductions.sums import sum
from flambeau._ops.scans.cumulative import is_recorded
from flambeau._ops.table.binder import require_tensor
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, functional, kernel
from flambeau._ops.table.pointwise import broadcast_shape, common_dtype
from flambeau._runtime import choice, cpu
from flambeau._tensor.examples import is_near, numbers_under
from flambeau._tensor.tensor import on_device_of, wrap

SMALL = choice.LIMITS["pointwise"]
"""Elements below which arithmetic is NumPy's."""
EUCLIDEAN_LIMIT = 25
"""With more rows than this, Euclidean distances come from a matrix product."""
KERNEL_NORMS = (0, 1, 2, math.inf)
"""The exponents that kernels compute with."""
FLOAT_BYTES = 4
"""Shorter numbers are no kernel's."""


# ---- pairs of rows


def _norms(gap: np.ndarray, p: float) -> np.ndarray:
    """p-norms along the last dim."""
    if p == 0:
        counted = np.where(np.isnan(gap), gap, gap != 0)
        return np.add.reduce(counted.astype(gap.dtype), -1)  # type: ignore[no-any-return]
    size = np.abs(gap)
    if p == 1:
        return np.add.reduce(size, -1)  # type: ignore[no-any-return]
    if p == 2:
        return np.sqrt(np.add.reduce(gap * gap, -1))  # type: ignore[no-any-return]
    if p == np.inf:
        return np.maximum.reduce(size, -1, initial=0)  # type: ignore[no-any-return]
    return np.add.reduce(size**p, -1) ** (1 / p)  # type: ignore[no-any-return]


def _euclidean(x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    """Distances by `|a|^2 - 2 a.b + |b|^2`, about a common centre, which keeps digits."""
    rows = math.prod(x1.shape[:-1])
    centre = np.add.reduce(x1, tuple(range(x1.ndim - 1))) / x1.dtype.type(rows)
    x1, x2 = x1 - centre, x2 - centre
    squares = -2 * matmul(x1, np.swapaxes(x2, -1, -2))
    squares += np.add.reduce(x1 * x1, -1)[..., :, None]
    squares += np.add.reduce(x2 * x2, -1)[..., None, :]
    return np.sqrt(np.maximum(squares, 0, out=squares), out=squares)


def _slope(gap: Any, distance: Any, p: float) -> Any:
    """The derivative of the p-norm of `gap` along its last dim, 0 where the norm is 0."""
    if p == 0:
        return ops.zeros_like(gap)
    if p == 1:
        return ops.where(gap != gap, gap, gap.sign())
    if p == float("inf"):
        return gap.sign() * (gap.abs() == distance)
    blocked = distance == 0
    safe = ops.masked_fill(distance, blocked, 1.0)
    if p == 2:
        return gap / safe
    power = gap.sign() * ops.masked_fill(gap.abs(), gap == 0, 1.0).pow(p - 1) * (gap != 0)
    return ops.masked_fill(power / safe.pow(p - 1), blocked, 0.0)


def _kernels(work: int, dtype: np.dtype[Any], p: float) -> Any:
    """The module of the kernels for so many differences of numbers of a type, or None."""
    if p not in KERNEL_NORMS or dtype.kind != "f" or dtype.itemsize < FLOAT_BYTES:
        return None
    if not work or not choice.compiled("distances", work):
        return None
    return launcher("losses.distance_launch")


def _slope_kernels(p: float, *tensors: Any) -> Any:
    """The same for gradients, which kernels compute where nobody wants theirs; the first of the
    tensors holds a number of each pair, the last one rows."""
    arrays = [tensor._data for tensor in tensors]
    plain = all(array.__class__ is np.ndarray for array in arrays)
    if p == 0 or not plain or is_recorded(*tensors):
        return None
    return _kernels(arrays[0].size * arrays[-1].shape[-1], arrays[0].dtype, p)


def _slopes_of_rows(kernels: Any, grad: Any, x1: Any, x2: Any, p: float, result: Any,
                    wanted: Any) -> Any:  # fmt: skip
    """The gradients of both, by kernels; the norm of a difference has no side."""
    weights, sizes, first, second = grad._data, result._data, x1._data, x2._data
    of_x1 = of_x2 = None
    if wanted[0]:
        of_x1 = wrap(kernels.slopes(weights, sizes, first, second, p))
    if wanted[1]:
        turned = [np.swapaxes(array, -1, -2) for array in (weights, sizes)]
        of_x2 = wrap(kernels.slopes(*turned, second, first, p))
    return of_x1, of_x2


def _cdist_gradients(grad: Any, x1: Any, x2: Any, p: float, result: Any, wanted: Any) -> Any:
    if p != 2:
        kernels = _slope_kernels(p, grad, result, x1, x2)
        if kernels is not None:
            return _slopes_of_rows(kernels, grad, x1, x2, p, result, wanted)
        gap = x1.unsqueeze(-2) - x2.unsqueeze(-3)
        slope = grad.unsqueeze(-1) * _slope(gap, result.unsqueeze(-1), p)
        return (slope.sum(-2) if wanted[0] else None), (-slope.sum(-3) if wanted[1] else None)
    blocked = result == 0
    ratio = ops.masked_fill(grad / ops.masked_fill(result, blocked, 1.0), blocked, 0.0)
    of_x1 = of_x2 = None
    if wanted[0]:
        of_x1 = x1 * ratio.sum(-1).unsqueeze(-1) - ops.matmul(ratio, x2)
    if wanted[1]:
        turned = ratio.transpose(-1, -2)
        of_x2 = x2 * turned.sum(-1).unsqueeze(-1) - ops.matmul(turned, x1)
    return of_x1, of_x2


@kernel(
    "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
    method=False,
    node="CdistBackward0",
    backward={("x1", "x2"): _cdist_gradients},
)
def cdist_forward(x1: np.ndarray, x2: np.ndarray, p: float,
                  compute_mode: int | None) -> np.ndarray:  # fmt: skip
    """Distances of all pairs of rows: [*, P, M] and [*, R, M] give [*, P, R]."""
    _check_cdist(wrap(x1), wrap(x2), p)
    dtype = x1.dtype
    x1, x2 = widen(x1), widen(x2)
    batch = broadcast_shape([x1.shape[:-2], x2.shape[:-2]])
    shape = (*batch, x1.shape[-2], x2.shape[-2])
    if 0 in shape or x1.shape[-1] == 0:
        return np.zeros(shape, dtype)
    large = x1.shape[-2] > EUCLIDEAN_LIMIT or x2.shape[-2] > EUCLIDEAN_LIMIT
    if p == 2 and (compute_mode == 1 or (large and compute_mode in (None, 0))):
        return narrow(np.ascontiguousarray(_euclidean(x1, x2)), dtype)
    kernels = _kernels(math.prod(shape) * x1.shape[-1], x1.dtype, p)
    if kernels is not None:
        return narrow(kernels.distances(x1, x2, p), dtype)
    return narrow(np.ascontiguousarray(_norms(x1[..., :, None, :] - x2[..., None, :, :], p)), dtype)


def _check_cdist(x1: Any, x2: Any, p: float) -> None:
    for name, x in (("X1", x1), ("X2", x2)):
        if x.dim() < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.dim()}D")
    for name, x in (("X1", x1), ("X2", x2)):
        if x._data.dtype.kind not in "fV":
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {name} got: {x.dtype.scalar_name}"
            )
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1.dtype is not x2.dtype:
        raise RuntimeError(
            f"expected scalar type {x1.dtype.scalar_name} but found {x2.dtype.scalar_name}"
        )


@composite(
    "cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor",
    autocast="float32",
    method=False,
    program=True,
)
def cdist(
    x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Any:
    """p-norm distances of all pairs of rows: x1 [*, P, M], x2 [*, R, M], result [*, P, R].

    >>> import flambeau as torch
    >>> torch.cdist(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """
    mode: int | None = None  # where the number of rows decides
    if compute_mode == "use_mm_for_euclid_dist":
        mode = 1
    elif compute_mode == "donot_use_mm_for_euclid_dist":
        mode = 2
    elif compute_mode != "use_mm_for_euclid_dist_if_necessary":
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    if EAGER:
        return ops._cdist_forward(x1, x2, p, mode)
    return ops.cdist(x1, x2, p, mode)


def _pdist_gradient(grad: Any, self: Any, p: float, result: Any) -> Any:
    kernels = _slope_kernels(p, grad, result, self)
    if kernels is not None:
        return wrap(kernels.slopes_of_pairs(grad._data, result._data, self._data, p))
    first, second = [on_device_of(wrap(index), self) for index in np.triu_indices(self.shape[0], 1)]
    gap = ops.embedding(self, first) - ops.embedding(self, second)
    slope = grad.unsqueeze(-1) * _slope(gap, result.unsqueeze(-1), p)
    rows = self.shape[0]
    to_first = ops.embedding_dense_backward(slope, first, rows, -1, False)
    return to_first - ops.embedding_dense_backward(slope, second, rows, -1, False)


@kernel(
    "_pdist_forward(Tensor self, float p=2.0) -> Tensor",
    method=False,
    node="PdistBackward0",
    backward={"self": _pdist_gradient},
)
def pdist_forward(self: np.ndarray, p: float) -> np.ndarray:
    """Distances of the pairs (i, j), i < j, of rows."""
    x = widen(self)
    rows, width = self.shape
    kernels = _kernels(rows * (rows - 1) // 2 * width, x.dtype, p)
    if kernels is not None:
        return narrow(kernels.pairs(x, p), self.dtype)
    first, second = np.triu_indices(rows, 1)
    return narrow(np.asarray(_norms(x[first] - x[second], p)), self.dtype)


@composite(
    "pdist(Tensor self, float p=2) -> Tensor", builtin=True, autocast="cuda=float32", method=False
)
def pdist(input: Any, p: float = 2.0) -> Any:
    """p-norm distances of all pairs of rows of [N, M]: N (N - 1) / 2 numbers.

    >>> import flambeau as torch
    >>> torch.pdist(torch.tensor([[0., 0.], [3., 4.], [0., 1.]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    if input._data.dtype.kind not in "fV":
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return ops._pdist_forward(input, p)


@composite(
    "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06,"
    " bool keepdim=False) -> Tensor",
    builtin=True,
    method=False,
)
def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    """The p-norm of `x1 - x2 + eps` along the last dim.

    >>> import flambeau as torch
    >>> torch.pairwise_distance(torch.tensor([[0., 0.]]), torch.tensor([[3., 4.]]))
    tensor([5.0000])
    """
    require_tensor("pairwise_distance", "x2", 2, x2)
    return ops._norm(x1 - x2 + eps, p, -1, keepdim)


@composite(
    "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
    builtin=True,
    method=False,
)
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """`x1 . x2 / (max(|x1|, eps) max(|x2|, eps))` along a dim, broadcasting.

    >>> import flambeau as torch
    >>> torch.nn.functional.cosine_similarity(torch.tensor([1.0, 0.0]), torch.tensor([1.0,
    ...     1.0]), dim=0)
    tensor(0.7071)
    """
    if not eps >= 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps:g}")
    first, second = x1._data, x2._data
    if first.shape != second.shape or first.dtype is not second.dtype or first.dtype.kind != "f":
        return _mixed_cosine(x1, x2, dim, eps)
    if first.__class__ is np.ndarray and first.size < SMALL and not is_recorded(x1, x2):
        found = _cosine(x1._data, x2._data, dim, eps)
        if found is not None:
            return wrap(found)
    return _product_of_directions(x1, x2, dim, eps).sum(dim)


def _mixed_cosine(x1: Any, x2: Any, dim: int, eps: float) -> Any:
    """The same of tensors of other shapes and types: each is divided by its norm in its own."""
    first, second = [
        x.expand(same._data.shape) if x.is_floating_point() else same
        for x, same in zip((x1, x2), _alike(x1, x2), strict=True)
    ]
    return _product_of_directions(first, second, dim, eps).sum(dim)


def _product_of_directions(x1: Any, x2: Any, dim: int, eps: float) -> Any:
    """Both divided by their norms, recorded in torch's order: backward begins with the first."""
    first, second = _limited_norm(x1, dim, eps), _limited_norm(x2, dim, eps)
    other = x2 / second
    return x1 / first * other


def _cosine(x1: np.ndarray, x2: np.ndarray, dim: int, eps: float) -> np.ndarray | None:
    """The same of arrays, by the bodies of its operators; None where a norm is less than `eps`."""
    with cpu.quiet():
        first, second = [vector_norm.body(x, 2, dim, True, None) for x in (x1, x2)]
        if np.count_nonzero(np.fmin(first, second) < eps):
            return None
        return sum.body(x1 / first * (x2 / second), dim, False, None)  # type: ignore[no-any-return]


def _alike(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Both in their common shape and type, which is a float one."""
    element = common_dtype([x1, x2])
    if element.numpy_dtype.kind not in "fV":
        raise RuntimeError("expected common dtype to be floating point, yet common dtype is "
                           f"{element.scalar_name}")  # fmt: skip
    shape = broadcast_shape([x1._data.shape, x2._data.shape])
    return x1.to(element).expand(shape), x2.to(element).expand(shape)


def _limited_norm(x: Any, dim: int, eps: float) -> Any:
    """At least `eps`; the gradient is the norm's own."""
    norm = ops.linalg.vector_norm(x, 2, dim, True)
    if is_near(norm._data) and not np.count_nonzero(numbers_under(norm._data) < eps):
        return norm
    return norm + (norm.detach().clamp_min(eps) - norm.detach())


# ---- losses


@composite(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0,"
    " int reduction=Mean) -> Tensor",
    autocast="float32",
    method=False,
)
def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = NONE
) -> Any:
    """`max(0, -target * (input1 - input2) + margin)`.

    Shapes broadcast; without reduction the result has their shape, else ().

    >>> import flambeau as torch
    >>> torch.margin_ranking_loss(torch.tensor([1.]), torch.tensor([3.]), torch.tensor([1.]))
    tensor([2.])
    """
    return reduced((-target * (input1 - input2) + float(margin)).clamp_min(0), reduction)


@functional()
def functional_margin_ranking_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Loss of pairs: `input1` should rank higher where the target is 1, lower where it is -1.

    Shapes broadcast; without reduction the result has their shape, else ().

    >>> import flambeau as torch
    >>> high, low = torch.tensor([1.]), torch.tensor([3.])
    >>> torch.nn.functional.margin_ranking_loss(high, low, torch.tensor([1.]))
    tensor(2.)
    """
    code = reduction_of(size_average, reduce, reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return ops.margin_ranking_loss(input1, input2, target, margin, code)


def _check_cosine(input1: Any, input2: Any, target: Any) -> None:
    if target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    wanted = target.dim() + 1
    if input1.dim() != wanted or input2.dim() != wanted:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {wanted}D input tensors, but found inputs with "
            f"sizes {list(input1.shape)} and {list(input2.shape)}."
        )


@composite(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0,"
    " int reduction=Mean) -> Tensor",
    autocast="float32",
    method=False,
)
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = NONE
) -> Any:
    """`1 - cos` where the target is 1, `max(0, cos - margin)` where it is -1.

    Shapes: both inputs (N, D) with target (N,), or (D,) with target (); reduced, the result is ().

    >>> import flambeau as torch
    >>> one, two = torch.tensor([[1., 0.]]), torch.tensor([[0., 1.]])
    >>> torch.cosine_embedding_loss(one, two, torch.tensor([1]))
    tensor([1.])
    """
    _check_cosine(input1, input2, target)
    epsilon = 1e-12
    dim = target.dim()
    product = (input1 * input2).sum(dim)
    first = (input1 * input1).sum(dim) + epsilon
    second = (input2 * input2).sum(dim) + epsilon
    cosine = product / (first * second).sqrt()
    zeros = ops.zeros_like(cosine)
    near = ops.where(target == 1, 1 - cosine, zeros)
    far = ops.where(target == -1, (cosine - margin).clamp_min(0), zeros)
    return reduced(near + far, reduction)


@functional()
def functional_cosine_embedding_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Loss of pairs of vectors [N, D] with targets 1 (alike) and -1 (unlike).

    >>> import flambeau as torch
    >>> one, two = torch.tensor([[1., 0.]]), torch.tensor([[0., 1.]])
    >>> torch.nn.functional.cosine_embedding_loss(one, two, torch.tensor([1]))
    tensor(1.)
    """
    code = reduction_of(size_average, reduce, reduction)
    return ops.cosine_embedding_loss(input1, input2, target, margin, code)


def _check_triplet(anchor: Any, positive: Any, negative: Any) -> None:
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and "
            f"negative {negative.dim()}D inputs"
        )


def _triplet(anchor: Any, positive: Any, negative: Any, distance: Callable[..., Any],
             margin: float, swap: bool, reduction: int) -> Any:  # fmt: skip
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), reduction)


@composite(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0,"
    " float p=2.0, float eps=1e-06, bool swap=False, int reduction=Mean) -> Tensor",
    autocast="float32",
    method=False,
)
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = NONE,
) -> Any:
    """`max(0, margin + |anchor - positive| - |anchor - negative|)`.

    Shapes (N, D) or (D,), the same for all three; without reduction the result has (N,) or ().

    >>> import flambeau as torch
    >>> anchor, near, far = torch.tensor([[0.]]), torch.tensor([[1.]]), torch.tensor([[1.5]])
    >>> torch.triplet_margin_loss(anchor, near, far)
    tensor([0.5000])
    """
    _check_triplet(anchor, positive, negative)

    def distance(left: Any, right: Any) -> Any:
        return pairwise_distance.body(left, right, p, eps)

    return _triplet(anchor, positive, negative, distance, margin, swap, reduction)


@functional()
def functional_triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Loss of triplets: the positive should be nearer to the anchor, by `margin`.

    Shapes (N, D) or (D,), the same for all three; without reduction the result has (N,) or ().

    >>> import flambeau as torch
    >>> anchor, near, far = torch.tensor([[0.]]), torch.tensor([[1.]]), torch.tensor([[1.5]])
    >>> torch.nn.functional.triplet_margin_loss(anchor, near, far)
    tensor(0.5000)
    """
    code = reduction_of(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return ops.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, code)


@composite(
    "triplet_margin_with_distance_loss(Tensor anchor, Tensor positive, Tensor negative, *,"
    " float margin=1.0, bool swap=False, str reduction='mean') -> Tensor",
    method=False,
    namespace="nn.functional",
)
def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Callable[..., Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """`triplet_margin_loss` with any distance; the default is `pairwise_distance`.

    Shapes (N, *), the same for all three; without reduction the result has that of the distances.

    >>> import flambeau as torch
    >>> anchor, near, far = torch.tensor([[0.]]), torch.tensor([[1.]]), torch.tensor([[1.5]])
    >>> torch.nn.functional.triplet_margin_with_distance_loss(anchor, near, far)
    tensor(0.5000)
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    _check_triplet(anchor, positive, negative)
    distance = pairwise_distance.body if distance_function is None else distance_function
    return _triplet(anchor, positive, negative, distance, margin, swap, reduction_code(reduction))
