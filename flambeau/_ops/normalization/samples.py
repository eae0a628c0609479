"""Normalisation within samples: layer and group norm, `local_response_norm`, `normalize`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from flambeau._ops.launching.memory_formats import in_format_of, is_images_of_pixels
from flambeau._ops.launching.precision import narrow, refuse, widen
from flambeau._ops.normalization.batch import check_mixed_types, check_types, row_dots
from flambeau._ops.reductions.sums import fused
from flambeau._ops.table.binder import plain_type_name, without_public_attribute
from flambeau._ops.table.dims import require_sizes
from flambeau._ops.table.graph_tools import sees_missing
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, functional, internal, kernel
from flambeau._ops.table.pointwise import wants_grad

BLOCK = 1 << 16
"""Elements of a block of rows: several passes over a block stay in the cache."""


def row_blocks(rows: np.ndarray) -> list[slice]:
    """Slices of a [M, N] array that are small enough for the cache."""
    step = max(BLOCK // max(rows.shape[1], 1), 1)
    return [slice(start, start + step) for start in range(0, rows.shape[0], step)]


def normalise_rows(rows: np.ndarray, eps: float, result: np.ndarray, mean: np.ndarray,
                   rstd: np.ndarray) -> None:  # fmt: skip
    """`(rows - mean) / sqrt(variance + eps)` of a [M, N] block; statistics [M] are written too."""
    length = rows.shape[1] or 1
    exact = np.add.reduce(rows, 1, np.float64) / length
    mean[...] = exact
    np.subtract(rows, exact[:, None], out=result, casting="same_kind")
    if result.dtype == np.float64:  # what rounding the mean has lost
        drift = np.add.reduce(result, 1) / length
        result -= drift[:, None]
        mean += np.where(np.isnan(drift), 0, drift)
    variance = row_dots(result, result)
    variance /= length
    variance += eps
    np.sqrt(variance, out=variance)
    np.divide(1, variance, out=rstd)
    result *= rstd[:, None]


def rows_gradient(normalised: np.ndarray, scaled: np.ndarray, rstd: np.ndarray) -> np.ndarray:
    """`rstd * (g - mean(g) - x * mean(g * x))` of rows; overwrites `normalised`."""
    length = scaled.shape[1] or 1
    along = row_dots(normalised, scaled)
    along /= -length
    normalised *= along[:, None]
    normalised += scaled
    normalised -= (np.add.reduce(scaled, 1) / length)[:, None]
    normalised *= rstd[:, None]
    return normalised


# ---- layer norm


def check_normalized_shape(shape: Any, normalized_shape: Sequence[int], weight: Any, bias: Any,
                           star: str) -> None:  # fmt: skip
    """Torch's errors about `normalized_shape` and the parameters of that shape. `star`: what is
    behind the star in its words; without it, too few dims are a ValueError."""
    whole = tuple(map(index, normalized_shape))
    fits = weight is None or weight.shape == whole, bias is None or bias.shape == whole
    if whole and shape[-len(whole) :] == whole and all(fits):
        return
    wanted = list(normalized_shape)
    if not wanted:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
            "element, but got normalized_shape = []"
        )
    for name, array in (("weight", weight), ("bias", bias)):
        if array is not None and list(array.shape) != wanted:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(array.shape)} and normalized_shape = {wanted}"
            )
    if len(shape) < len(wanted) and not star:
        raise ValueError(f"Input tensor must have at least {len(wanted)} dimensions, but got "
                         f"{len(shape)}")  # fmt: skip
    if len(shape) < len(wanted) or list(shape[len(shape) - len(wanted) :]) != wanted:
        inner = ", ".join(str(n) for n in wanted)
        raise RuntimeError(
            f"Given normalized_shape={wanted}, expected input with shape [*{star}{inner}], but got "
            f"input of size{list(shape)}"
        )


def flat_rows(data: np.ndarray, dims: int) -> np.ndarray:
    """[M, N]: the last `dims` dims as columns, in the type to compute in."""
    columns = math.prod(data.shape[data.ndim - dims :])
    rows = math.prod(data.shape[: data.ndim - dims])
    return widen(data).reshape(rows, columns)


def _layer_norm_gradients(grad: Any, input: Any, normalized_shape: Any, weight: Any, bias: Any,
                          eps: float, result1: Any, result2: Any, wanted: Any) -> Any:  # fmt: skip
    if wants_grad((grad, input, weight)):
        return _composed_layer_norm(grad, input, len(normalized_shape), weight, eps, wanted)
    return ops.native_layer_norm_backward(grad, input, normalized_shape, result1, result2, weight,
                                          bias, wanted)  # fmt: skip


def _composed_layer_norm(grad: Any, input: Any, count: int, weight: Any, eps: float,
                         mask: Any) -> Any:  # fmt: skip
    """The gradients by public operators, from the input alone."""
    dims = list(range(input.dim() - count, input.dim()))
    outer = list(range(input.dim() - count))
    centered = input - input.mean(dims, keepdim=True)
    rstd = ((centered * centered).mean(dims, keepdim=True) + eps).rsqrt()
    normalised = centered * rstd
    scaled = grad if weight is None else grad * weight
    along = (scaled * normalised).mean(dims, keepdim=True)
    result = rstd * (scaled - scaled.mean(dims, keepdim=True) - normalised * along)
    of_weight = grad * normalised
    return (
        result if mask[0] else None,
        (of_weight.sum(outer) if outer else of_weight) if mask[1] else None,
        (grad.sum(outer) if outer else grad) if mask[2] else None,
    )


@kernel(
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias,"
    " float eps) -> (Tensor, Tensor, Tensor)",
    inline=True,
    saved_names={"eps": None},
    between_kernels=True,
    fused=True,
    device_check="_native_layer_norm",
    batch=(0, None, None),
    method=False,
    autocast="cuda=float32",
    nondifferentiable=("result1", "result2"),
    backward={("input", "weight", "bias"): _layer_norm_gradients},
)
def native_layer_norm(
    input: np.ndarray,
    normalized_shape: Sequence[int],
    weight: np.ndarray | None,
    bias: np.ndarray | None,
    eps: float,
) -> Any:
    """Normalised input, mean and 1 / standard deviation over the last dims.

    >>> import flambeau as torch
    >>> torch.native_layer_norm(torch.tensor([[1., 3.]]), [2], None, None, 1e-5)[:2]
    (tensor([[-1.0000,  1.0000]]), tensor([[2.]]))
    """
    check_mixed_types(input, [weight, bias])
    check_normalized_shape(input.shape, normalized_shape, weight, bias, ", ")
    if input.dtype.kind not in "fV":
        raise refuse("LayerNormKernelImpl", input.dtype)
    check_types(input, [weight, bias])
    dims = len(normalized_shape)
    kept = input.dtype if weight is None else weight.dtype
    stats_shape = input.shape[: input.ndim - dims] + (1,) * dims
    kernels = fused("norm", input, kept)
    if kernels is not None:
        return kernels.layer_norm(input, stats_shape, weight, bias, eps, kept)
    rows = flat_rows(input, dims)
    result = np.empty(rows.shape, rows.dtype)
    mean, rstd = np.empty(len(rows), rows.dtype), np.empty(len(rows), rows.dtype)
    scale = None if weight is None else widen(weight).reshape(-1)
    shift = None if bias is None else widen(bias).reshape(-1)
    for block in row_blocks(rows):
        part = result[block]
        normalise_rows(rows[block], eps, part, mean[block], rstd[block])
        if scale is not None:
            part *= scale
        if shift is not None:
            part += shift
    stats = [narrow(stat, kept).reshape(stats_shape) for stat in (mean, rstd)]
    return narrow(result, input.dtype).reshape(input.shape), *stats


@internal(
    "native_layer_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape,"
    " Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask)"
    " -> (Tensor, Tensor, Tensor)",
    between_kernels=True,
)
def native_layer_norm_backward(grad_out: np.ndarray, input: np.ndarray,
                               normalized_shape: Sequence[int], mean: np.ndarray,
                               rstd: np.ndarray, weight: np.ndarray | None,
                               bias: np.ndarray | None, output_mask: Any) -> Any:  # fmt: skip
    """Gradients of input, weight and bias, block by block of rows."""
    dims = len(normalized_shape)
    kept = input.dtype if weight is None else weight.dtype
    shape = tuple(normalized_shape)
    kernels = fused("norm", input, grad_out)
    if kernels is not None:
        found = kernels.layer_norm_backward(input, grad_out, math.prod(shape), weight, mean, rstd)
        return wanted_gradients(found, kept, shape, output_mask)
    rows, grad = flat_rows(input, dims), flat_rows(grad_out, dims)
    means, rstds = widen(mean).reshape(-1), widen(rstd).reshape(-1)
    scale = None if weight is None else widen(weight).reshape(-1)
    result = np.empty(rows.shape, rows.dtype) if output_mask[0] else None
    of_weight, of_bias = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for block in row_blocks(rows):
        normalised = rows[block] - means[block, None]
        normalised *= rstds[block, None]
        part = grad[block]
        if output_mask[1]:
            of_weight += np.add.reduce(part * normalised, 0)
        if output_mask[2]:
            of_bias += np.add.reduce(part, 0)
        if result is not None:
            scaled = part if scale is None else part * scale
            result[block] = rows_gradient(normalised, scaled, rstds[block])
    return (
        None if result is None else narrow(result, input.dtype).reshape(input.shape),
        of_weight.reshape(shape).astype(kept) if output_mask[1] else None,
        of_bias.reshape(shape).astype(kept) if output_mask[2] else None,
    )


def wanted_gradients(found: Any, kept: Any, shape: tuple[int, ...], mask: Any) -> Any:
    """Those gradients of input and parameters that are wanted, in their types."""
    parameters = [values.reshape(shape).astype(kept) if wanted else None
                  for values, wanted in zip(found[1:], mask[1:], strict=True)]  # fmt: skip
    return found[0] if mask[0] else None, *parameters


@composite(
    "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None,"
    " Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
    regular=True,
    fused=True,
    bare=True,
    method=False,
)
def layer_norm(
    input: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:
    """Normalise over the last dims, which have `normalized_shape`; then scale and shift.

    >>> import flambeau as torch
    >>> torch.nn.functional.layer_norm(torch.tensor([1.0, 3.0]), (2,))
    tensor([-1.0000,  1.0000])
    """
    check_shape_type("layer_norm", normalized_shape)
    return ops.native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


def check_shape_type(name: str, value: Any) -> None:
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{name}(): argument 'normalized_shape' (position 2) must be tuple of "
                        f"ints, not {plain_type_name(value)}")  # fmt: skip


# ---- group norm


@sees_missing
def _group_norm_gradients(grads: Any, input: Any, weight: Any, N: int, C: int, HxW: int,
                          group: int, eps: float, result1: Any, result2: Any,
                          wanted: Any) -> Any:  # fmt: skip
    grad, of_mean, of_rstd = grads
    statistics_used = of_mean is not None or of_rstd is not None
    if statistics_used or wants_grad((grad, input, weight)):
        return _composed_group_norm(grads, input, weight, (N, C, HxW, group), eps, wanted)
    return ops.native_group_norm_backward(grad, input, result1, result2, weight, N, C, HxW, group,
                                          wanted)  # fmt: skip


def _composed_group_norm(grads: Any, input: Any, weight: Any, sizes: Any, eps: float,
                         mask: Any) -> Any:  # fmt: skip
    """The gradients by public operators, those of mean and rstd included."""
    grad, of_mean, of_rstd = grads
    grad = ops.zeros_like(input) if grad is None else grad
    batch, channels, spatial, group = sizes
    rows = batch * group, channels // group * spatial
    grouped = input.reshape(rows)
    centered = grouped - grouped.mean(1, keepdim=True)
    rstd = ((centered * centered).mean(1, keepdim=True) + eps).rsqrt()
    normalised = centered * rstd
    planes = grad.reshape(batch, channels, spatial)
    scaled = planes if weight is None else planes * weight.view(1, -1, 1)
    scaled = scaled.reshape(rows)
    along = (scaled * normalised).mean(1, keepdim=True)
    result = rstd * (scaled - scaled.mean(1, keepdim=True) - normalised * along)
    if of_mean is not None:
        result = result + of_mean.reshape(-1, 1) / grouped.shape[1]
    if of_rstd is not None:
        bend = of_rstd.reshape(-1, 1) * rstd * rstd * normalised
        result = result - bend / grouped.shape[1]
    of_weight = planes * normalised.reshape(batch, channels, spatial)
    return (
        result.reshape(input.shape) if mask[0] else None,
        of_weight.sum([0, 2]) if mask[1] else None,
        planes.sum([0, 2]) if mask[2] else None,
    )


@kernel(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW,"
    " int group, float eps) -> (Tensor, Tensor, Tensor)",
    method=False,
    autocast="cuda=float32",
    backward={("input", "weight", "bias"): _group_norm_gradients},
)
def native_group_norm(input: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None,
                      N: int, C: int, HxW: int, group: int, eps: float) -> Any:  # fmt: skip
    """Normalised input, mean [N, group] and 1 / standard deviation [N, group].

    >>> import flambeau as torch
    >>> x = torch.tensor([[[1.], [3.], [10.], [30.]]])
    >>> torch.native_group_norm(x, None, None, 1, 4, 1, 2, 1e-5)[1]
    tensor([[ 2., 20.]])
    """
    _check_groups(input, weight, bias, C, group)
    if input.dtype.kind not in "fV":
        raise refuse("GroupNormKernelImpl", input.dtype)
    check_types(input, [weight, bias])
    kept = input.dtype if weight is None else weight.dtype
    kernels = fused("norm", input, kept)
    if kernels is not None:
        rows = np.ascontiguousarray(input)
        found, *stats = kernels.group_norm(rows, (N, C, HxW), group, weight, bias, eps, kept)
        return in_format_of(found, input), *stats
    rows = widen(input).reshape(N * group, C // group * HxW)
    result = np.empty(rows.shape, rows.dtype)
    mean, rstd = np.empty(len(rows), rows.dtype), np.empty(len(rows), rows.dtype)
    scale = None if weight is None else widen(weight)[:, None]
    shift = None if bias is None else widen(bias)[:, None]
    planes = result.reshape(N, C, HxW)
    for samples in row_blocks(result.reshape(N, C * HxW)):
        block = slice(samples.start * group, samples.stop * group)
        normalise_rows(rows[block], eps, result[block], mean[block], rstd[block])
        if scale is not None:
            planes[samples] *= scale  # type: ignore[misc]
        if shift is not None:
            planes[samples] += shift  # type: ignore[misc]
    stats = [narrow(stat, kept).reshape(N, group) for stat in (mean, rstd)]
    values = narrow(result, input.dtype).reshape(input.shape)
    return in_format_of(values, input), *stats


def _check_groups(input: np.ndarray, weight: Any, bias: Any, channels: int, group: int) -> None:
    shape = list(input.shape)
    if group <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {group}")
    if channels % group:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {shape} and num_groups={group}"
        )
    for name, array in (("weight", weight), ("bias", bias)):
        if array is not None and array.shape != (channels,):
            named = array if name == "weight" else weight  # so in torch, for both
            mine = [0] if named is None else list(named.shape)
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, "
                f"but got {name} of shape {mine} and input of shape {shape}"
            )


@internal(
    "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd,"
    " Tensor? weight, int N, int C, int HxW, int group, bool[3] output_mask)"
    " -> (Tensor, Tensor, Tensor)",
)
def native_group_norm_backward(grad_out: np.ndarray, input: np.ndarray, mean: np.ndarray,
                               rstd: np.ndarray, weight: np.ndarray | None, N: int, C: int,
                               HxW: int, group: int, output_mask: Any) -> Any:  # fmt: skip
    """Gradients of input, weight and bias."""
    kernels = fused("norm", input, grad_out)
    if kernels is not None:
        return _compiled_group_gradients(kernels, grad_out, input, mean, rstd, weight,
                                         (N, C, HxW), group, output_mask)  # fmt: skip
    rows = widen(input).reshape(N * group, C // group * HxW)
    planes = widen(grad_out).reshape(N, C, HxW)
    rstds = widen(rstd).reshape(-1)
    normalised = rows - widen(mean).reshape(-1, 1)
    normalised *= rstds[:, None]  # type: ignore[misc]
    kept = input.dtype if weight is None else weight.dtype
    of_weight = of_bias = result = None
    if output_mask[1]:
        of_weight = np.add.reduce(row_dots(planes, normalised.reshape(N, C, HxW)), 0).astype(kept)
    if output_mask[2]:
        of_bias = np.add.reduce(np.add.reduce(planes, 2), 0).astype(kept)
    if output_mask[0]:
        scaled = planes if weight is None else planes * widen(weight)[:, None]
        result = rows_gradient(normalised, scaled.reshape(rows.shape), rstds)
        result = narrow(result, input.dtype).reshape(input.shape)
    return result, of_weight, of_bias


def _compiled_group_gradients(kernels: Any, grad: np.ndarray, input: np.ndarray, mean: np.ndarray,
                              rstd: np.ndarray, weight: np.ndarray | None,
                              shape: tuple[int, int, int], group: int,
                              mask: Any) -> Any:  # fmt: skip
    kept = input.dtype if weight is None else weight.dtype
    result = of_weight = of_bias = None
    if mask[0]:
        result = kernels.group_norm_backward(input, grad, shape, group, weight, mean, rstd)
    if mask[1] or mask[2]:
        sums = kernels.group_sums(input, grad, shape, group, mean, rstd)
        of_weight, of_bias = (part.astype(kept) if wanted else None
                              for part, wanted in zip(sums, mask[1:], strict=True))  # fmt: skip
    return result, of_weight, of_bias


@composite(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None,"
    " float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
    method=False,
)
def group_norm(
    input: Any,
    num_groups: int,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Any:
    """Normalise each of `num_groups` groups of channels of [N, C, *]; scale and shift channels.

    >>> import flambeau as torch
    >>> torch.group_norm(torch.tensor([[1., 3., 10., 30.]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    data = input._data
    if data.ndim < 2:
        require_sizes(data.ndim, 0, 1)
    batch, channels, spatial = data.shape[0], data.shape[1], math.prod(data.shape[2:])
    as_it_is = data.flags.c_contiguous or is_images_of_pixels(data)
    rows = input if as_it_is else input.contiguous()
    return ops.native_group_norm(rows, weight, bias, batch, channels, spatial, num_groups, eps)[0]


@functional()
def functional_group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """`torch.group_norm`, with a check that there is more than one value to normalise.

    Shapes: input and result (N, C, *), weight and bias (C,).

    >>> import flambeau as torch
    >>> torch.nn.functional.group_norm(torch.tensor([[1., 3., 10., 30.]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    try:
        ndim = input._data.ndim
    except AttributeError:
        without_public_attribute("dim", input)
        raise
    if ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {ndim}")
    shape = input._data.shape
    if shape[0] * (shape[1] // num_groups) * math.prod(shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size "
                         f"{list(shape)}")  # fmt: skip
    return ops.group_norm(input, num_groups, weight, bias, eps, True)


# ---- others


@functional()
def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:
    """`input / (k + alpha * mean of squares over `size` neighbouring channels) ** beta`.

    >>> import flambeau as torch
    >>> torch.nn.functional.local_response_norm(torch.ones(1, 4, 2), 3).shape
    torch.Size([1, 4, 2])
    """
    if input.dim() < 3:
        raise ValueError("Expected 3D or higher dimensionality                          input "
                         f"(got {input.dim()} dimensions)")  # fmt: skip
    if input.numel() == 0:
        return input
    squares, before, behind = input.mul(input), size // 2, (size - 1) // 2
    if input.dim() == 3:
        padded = ops.nn.functional.pad(squares.unsqueeze(1), [0, 0, before, behind])
        mean = ops.nn.functional.avg_pool2d(padded, [size, 1], 1).squeeze(1)
    else:
        sizes = input.size()
        squares = squares.view(sizes[0], 1, sizes[1], sizes[2], -1)
        padded = ops.nn.functional.pad(squares, [0, 0, 0, 0, before, behind])
        mean = ops.nn.functional.avg_pool3d(padded, [size, 1, 1], 1).squeeze(1).view(sizes)
    return input / mean.mul(alpha).add(k).pow(beta)


@functional()
def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """`input / max(norm(input, p, dim), eps)`.

    >>> import flambeau as torch
    >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    norm = ops.linalg.vector_norm(input, p, dim, True).clamp_min(eps)
    return input / norm if out is None else ops.div(input, norm, out=out)
