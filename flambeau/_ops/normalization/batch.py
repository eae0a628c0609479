"""Normalisation over batches: `batch_norm` and `instance_norm`.

Means and variances are two-pass: first the mean, then the mean square of what is left. Sums over
samples add up in float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._ops.launching.memory_formats import in_format, is_last, is_suggested_last
from flambeau._ops.launching.precision import narrow, refuse, widen
from flambeau._ops.reductions.sums import fused
from flambeau._ops.table.binder import explained, require_tensor
from flambeau._ops.table.dims import require_sizes
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, functional, internal, kernel
from flambeau._ops.table.pointwise import wants_grad
from flambeau._tensor.tensor import Tensor

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
DOT_LIMIT = 1 << 13
"""Up to here BLAS sums products as exactly as a pairwise sum does."""


def row_dots(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Sums of products along the last dim."""
    if left.shape[-1] <= DOT_LIMIT:
        return np.vecdot(left, right)  # type: ignore[no-any-return]
    return np.add.reduce(left * right, -1)  # type: ignore[no-any-return]


def _column_sums(flat: np.ndarray) -> np.ndarray:
    """Sums over rows, in float64 where there are many."""
    wide = FLOAT64 if len(flat) > 64 else None
    return np.add.reduce(flat, 0, dtype=wide)  # type: ignore[no-any-return]


STATS = ("running_mean", "running_var", "weight", "bias")


class Channels:
    """An array [N, C, *] as [M, C] (channels innermost) or [N, C, S], and sums by channel."""

    __slots__ = ("inner", "shape")

    def __init__(self, data: np.ndarray) -> None:
        self.shape = data.shape
        self.inner = data.ndim == 2 or (
            data.ndim > 2 and not data.flags.c_contiguous
            and np.moveaxis(data, 1, -1).flags.c_contiguous
        )  # fmt: skip

    def flat(self, data: np.ndarray) -> np.ndarray:
        """The array in this layout and in the type to compute in."""
        data = widen(data)
        if data.ndim == 2:
            return data
        if self.inner:
            return np.moveaxis(data, 1, -1).reshape(self._rows(), self.shape[1])
        return data.reshape(self.shape[0], self.shape[1], math.prod(self.shape[2:]))

    def _rows(self) -> int:
        return math.prod((self.shape[0], *self.shape[2:]))

    def total(self, flat: np.ndarray) -> np.ndarray:
        """[C], float64: the sum over each channel."""
        if self.inner:
            return _column_sums(flat)
        return np.add.reduce(np.add.reduce(flat, 2), 0, dtype=FLOAT64)  # type: ignore[no-any-return]

    def dot(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """[C], float64: the sum of products over each channel."""
        if self.inner:
            return _column_sums(left * right)
        return np.add.reduce(row_dots(left, right), 0, dtype=FLOAT64)  # type: ignore[no-any-return]

    def spread(self, values: np.ndarray, flat: np.ndarray) -> np.ndarray:
        """One value per channel, to broadcast against a flat array."""
        values = values.astype(flat.dtype, copy=False)
        return values if self.inner else values[:, None]

    def restore(self, flat: np.ndarray, dtype: Any) -> np.ndarray:
        """A result in the shape, memory format and type of the input."""
        flat = narrow(flat, dtype)
        if len(self.shape) == 2:
            return flat
        if not self.inner:
            return flat.reshape(self.shape)
        rest = (self.shape[0], *self.shape[2:], self.shape[1])
        return np.moveaxis(flat.reshape(rest), -1, 1)


def _check_stats(input: np.ndarray, *parameters: np.ndarray | None) -> None:
    """Sizes and types of running statistics, weight and bias, in torch's words."""
    channels = input.shape[1] if input.ndim > 1 else 0
    dtype = input.dtype
    for array in parameters:
        if array is not None and (array.size != channels or array.dtype is not dtype):
            break
    else:
        if dtype.kind == "f":
            return
    named = dict(zip(STATS, parameters, strict=True))
    for name, array in named.items():
        if array is not None and array.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {array.size}")
    if input.dtype.kind not in "fV":
        raise refuse("batch_norm", input.dtype)
    order = ("weight", "bias", "running_mean", "running_var")
    check_types(input, [named[name] for name in order])


def check_types(input: np.ndarray, parameters: list[np.ndarray | None]) -> None:
    """Half inputs may have float32 parameters; otherwise types are the same. The first parameter
    tells which of the two it is."""
    given = [array for array in parameters if array is not None]
    if check_mixed_types(input, given):
        return
    for array in given:
        if array.dtype != input.dtype:
            words = [dt.from_numpy_dtype(a.dtype).scalar_name for a in (input, array)]
            raise RuntimeError(f"expected scalar type {words[0]} but found {words[1]}")


def check_mixed_types(input: np.ndarray, parameters: Sequence[np.ndarray | None]) -> bool:
    """Whether the first parameter has another type than the input: then all must be float32, and
    the input of half type."""
    given = [array for array in parameters if array is not None]
    if not given or given[0].dtype == input.dtype:
        return False
    if any(array.dtype != FLOAT32 for array in given):
        raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
    if input.dtype not in dt.NUMPY_HALVES:
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
    return True


def _update(running: np.ndarray | None, value: np.ndarray, momentum: float) -> None:
    if running is not None:
        kept = running.astype(FLOAT64)
        kept *= 1 - momentum
        kept += momentum * value
        running[...] = kept


def _statistics(channels: Channels, flat: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """Mean [C], variance [C] (biased), and the centered values."""
    count = max(flat.size // max(channels.shape[1], 1), 1)
    mean = channels.total(flat) / count
    centered = np.subtract(flat, channels.spread(mean, flat))
    return mean, channels.dot(centered, centered) / count, centered


def _batch_norm_gradients(grad: Any, input: Any, weight: Any, running_mean: Any, running_var: Any,
                          result1: Any, result2: Any, training: bool, eps: float,
                          wanted: Any) -> Any:  # fmt: skip
    return ops.native_batch_norm_backward(grad, input, weight, running_mean, running_var, result1,
                                          result2, training, eps, wanted)  # fmt: skip


@kernel(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? running_mean,"
    " Tensor(b!)? running_var, bool training, float momentum, float eps)"
    " -> (Tensor, Tensor, Tensor)",
    device_check="_native_batch_norm",
    method=False,
    nondifferentiable=("result1", "result2"),
    constants=dict.fromkeys(("running_mean", "running_var"), "native_batch_norm"),
    backward={("input", "weight", "bias"): _batch_norm_gradients},
)
def native_batch_norm(input: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None,
                      running_mean: np.ndarray | None, running_var: np.ndarray | None,
                      training: bool, momentum: float, eps: float) -> Any:  # fmt: skip
    """Normalised input, mean, and 1 / standard deviation (both empty in evaluation).

    Shapes: input [N, C, *], weight, bias and statistics [C].

    Training writes to the running statistics: the variance that is kept is the unbiased one.

    >>> import flambeau as torch
    >>> x = torch.tensor([[1., 10.], [3., 30.]])
    >>> torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)[1]
    tensor([ 2., 20.])
    """
    result, mean, invstd = _batch_norm(input, weight, bias, running_mean, running_var, training,
                                       momentum, eps)  # fmt: skip
    return in_format(result, is_suggested_last(input) or is_last(input)), mean, invstd


def _batch_norm(input: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None,
                running_mean: np.ndarray | None, running_var: np.ndarray | None, training: bool,
                momentum: float, eps: float) -> Any:  # fmt: skip
    """As `native_batch_norm`, in memory of any order."""
    if (running_mean is None) is not (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if not training and running_mean is None:
        raise RuntimeError("running_mean must be defined in evaluation mode")
    _check_stats(input, running_mean, running_var, weight, bias)
    kernels = fused("norm", input)
    if kernels is not None and (eps or not training):
        found = _compiled_batch_norm(kernels, input, weight, bias, running_mean, running_var,
                                     training, momentum, eps)  # fmt: skip
        if found is not None:
            return found
    channels = Channels(input)
    flat = channels.flat(input)
    if training:
        mean, variance, result = _statistics(channels, flat)
        count = flat.size // max(input.shape[1], 1)
        _update(running_mean, mean, momentum)
        _update(running_var, variance * count / max(count - 1, 1), momentum)
    else:
        mean, variance = widen(running_mean), widen(running_var)  # type: ignore[arg-type]
    invstd = 1 / np.sqrt(variance + eps)
    if training and not eps:
        invstd[variance == 0] = 0  # so that values that are all the same become 0
    scale = invstd if weight is None else invstd * widen(weight)
    kept = _kept_type(input, weight, running_mean)
    if not training:
        result = _scaled(channels, flat, scale, mean, bias)
        return channels.restore(result, input.dtype), np.empty(0, kept), np.empty(0, kept)
    result *= channels.spread(scale, flat)
    if bias is not None:
        result += channels.spread(widen(bias), flat)
    return channels.restore(result, input.dtype), mean.astype(kept), invstd.astype(kept)


def _compiled_batch_norm(kernels: Any, input: np.ndarray, weight: Any, bias: Any,
                         running_mean: Any, running_var: Any, training: bool, momentum: float,
                         eps: float) -> Any:  # fmt: skip
    """As `native_batch_norm`; None where the input's memory fits no kernel."""
    kept = _kept_type(input, weight, running_mean)
    if training:
        found = kernels.batch_norm(input, weight, bias, eps)
        if found is None:
            return None
        result, mean, invstd, variance = found
        count = input.size // input.shape[1]
        _update(running_mean, mean, momentum)
        _update(running_var, variance * (count / max(count - 1, 1)), momentum)
        return result, mean.astype(kept, copy=False), invstd.astype(kept, copy=False)
    result = kernels.fixed_norm(input, weight, bias, running_mean, running_var, eps)
    return None if result is None else (result, np.empty(0, kept), np.empty(0, kept))


def _scaled(channels: Channels, flat: np.ndarray, scale: np.ndarray, mean: np.ndarray,
            bias: np.ndarray | None) -> np.ndarray:  # fmt: skip
    """`(x - mean) * scale + bias` as one product and one sum, sample by sample."""
    shift = -mean * scale if bias is None else widen(bias) - mean * scale
    scale, shift = channels.spread(scale, flat), channels.spread(shift, flat)
    if channels.inner or flat[:1].size < DOT_LIMIT:
        result = flat * scale
        result += shift
        return result
    result = np.empty(flat.shape, flat.dtype)
    for sample, part in zip(flat, result, strict=True):
        np.multiply(sample, scale, out=part)
        part += shift
    return result


def _kept_type(input: np.ndarray, *parameters: np.ndarray | None) -> Any:
    """The type of saved statistics: float32 where half inputs have float32 parameters."""
    for array in parameters:
        if array is not None:
            return array.dtype
    return input.dtype


@composite(
    "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight,"
    " Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd,"
    " bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    method=False,
    function=False,
)
def native_batch_norm_backward(
    grad_out: Any,
    input: Any,
    weight: Any,
    running_mean: Any,
    running_var: Any,
    save_mean: Any,
    save_invstd: Any,
    train: bool,
    eps: float,
    output_mask: Any,
) -> Any:
    """Gradients of input, weight and bias; differentiable again where their inputs are."""
    if wants_grad((grad_out, input, weight)):
        return _composed_gradients(
            grad_out, input, weight, running_mean, running_var, train, eps, output_mask
        )
    mean, spread = (save_mean, save_invstd) if train else (running_mean, running_var)
    return ops._batch_norm_backward(
        grad_out, input, weight, mean, spread, bool(train), eps, output_mask
    )


@internal(
    "_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor mean,"
    " Tensor spread, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
)
def batch_norm_backward(grad_out: np.ndarray, input: np.ndarray, weight: np.ndarray | None,
                        mean: np.ndarray, spread: np.ndarray, train: bool, eps: float,
                        output_mask: Any) -> Any:  # fmt: skip
    """`spread` is 1 / standard deviation in training, the running variance in evaluation."""
    kept = input.dtype if weight is None else weight.dtype
    invstd = widen(spread) if train else 1 / np.sqrt(widen(spread) + eps)
    kernels = fused("norm", input)
    if kernels is not None:
        found = kernels.batch_norm_backward(input, grad_out, weight, mean, invstd, train)
        if found is not None:
            of_weight, of_bias = (part.astype(kept, copy=False) for part in found[1:])
            return (
                found[0] if output_mask[0] else None,
                of_weight if output_mask[1] else None,
                of_bias if output_mask[2] else None,
            )
    channels = Channels(input)
    flat, grad = channels.flat(input), channels.flat(grad_out)
    scale = invstd if weight is None else invstd * widen(weight)
    of_bias = channels.total(grad)
    if not train and not output_mask[1]:
        result = grad * channels.spread(scale, grad)
        return channels.restore(result, input.dtype), None, of_bias.astype(kept)
    result = np.subtract(flat, channels.spread(widen(mean), flat))
    of_weight = channels.dot(grad, result) * invstd
    if output_mask[0]:
        result = _input_gradient(channels, result, grad, scale, invstd, of_weight, of_bias, train)
    return (
        channels.restore(result, input.dtype) if output_mask[0] else None,
        of_weight.astype(kept) if output_mask[1] else None,
        of_bias.astype(kept) if output_mask[2] else None,
    )


def _input_gradient(channels: Channels, centered: np.ndarray, grad: np.ndarray, scale: np.ndarray,
                    invstd: np.ndarray, of_weight: np.ndarray, of_bias: np.ndarray,
                    train: bool) -> np.ndarray:  # fmt: skip
    """`scale * (grad - mean(grad) - normalised * mean(grad * normalised))`, in place."""
    if not train:
        return grad * channels.spread(scale, grad)
    count = max(grad.size // max(channels.shape[1], 1), 1)
    centered *= channels.spread(-of_weight * invstd / count, grad)
    centered += grad
    centered -= channels.spread(of_bias / count, grad)
    centered *= channels.spread(scale, grad)
    return centered


def _composed_gradients(grad: Any, input: Any, weight: Any, running_mean: Any, running_var: Any,
                        train: bool, eps: float, mask: Any) -> Any:  # fmt: skip
    """The same by public operators, from the input alone."""
    dims = [0, *range(2, input.dim())]
    shape = [-1 if dim == 1 else 1 for dim in range(input.dim())]
    if train:
        centered = input - input.mean(dims, keepdim=True)
        variance = (centered * centered).mean(dims, keepdim=True)
    else:
        centered = input - running_mean.view(shape)
        variance = running_var.view(shape)
    invstd = (variance + eps).rsqrt()
    normalised = centered * invstd
    scaled = grad if weight is None else grad * weight.view(shape)
    result = scaled
    if train:
        along = (scaled * normalised).mean(dims, keepdim=True)
        result = scaled - scaled.mean(dims, keepdim=True) - normalised * along
    return (
        result * invstd if mask[0] else None,
        (grad * normalised).sum(dims) if mask[1] else None,
        grad.sum(dims) if mask[2] else None,
    )


# ---- public functions


def _normalised(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any,
                training: bool, momentum: float, eps: float) -> Any:  # fmt: skip
    """The first result of `native_batch_norm`; nothing is normalised in an empty batch."""
    if input._data.size == 0:
        _check_empty(input, running_mean, running_var)
        result = ops.clone(input)
        result = result if weight is None else result * weight[0]
        return result if bias is None else result + bias[0]
    _check_kept(input, training, running_mean, running_var)
    return ops.native_batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )[0]


def _check_kept(input: Any, training: bool, running_mean: Any, running_var: Any) -> None:
    """One statistic after the other: that it is there where it has to be, and its size."""
    if running_mean is not None and running_var is not None:
        return
    channels = input._data.shape[1] if input._data.ndim > 1 else 0
    given = (("running_mean", running_mean), ("running_var", running_var))
    for place, (name, kept) in enumerate(given, 4):
        if kept is None and not training:
            raise RuntimeError(f"{name} must be defined in evaluation mode")
        if kept is not None:
            require_tensor("batch_norm", name, place, kept)
        if kept is not None and kept._data.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {kept._data.size}")


def _check_empty(input: Any, running_mean: Any, running_var: Any) -> None:
    arrays = [None if t is None else t._data for t in (running_mean, running_var)]
    _check_stats(input._data, *arrays, None, None)


@composite(
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean,"
    " Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled)"
    " -> Tensor",
    method=False,
)
def batch_norm(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Any:
    """`(input - mean) / sqrt(var + eps) * weight + bias` with statistics of each channel.

    Shapes: input and result [N, C, *], all others [C].

    >>> import flambeau as torch
    >>> x = torch.tensor([[1., 10.], [3., 30.]])
    >>> torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
    """
    return _normalised(input, weight, bias, running_mean, running_var, training, momentum, eps)


def _check_batch_size(input: Any) -> None:
    shape = input._data.shape
    if math.prod(shape[:1]) * math.prod(shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {input.size()}"
        )


def _check_batch_norm(input: Any, running_mean: Any | None, running_var: Any | None,
                      training: bool, eps: float) -> None:  # fmt: skip
    if not training:
        if eps < 0:
            raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
        return
    _check_batch_size(input)
    if eps <= 0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")


@functional()
def functional_batch_norm(
    input: Any,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Normalise each channel of [N, C, *] by its batch (training) or running statistics.

    Training moves the running statistics towards the batch's by `momentum`.

    >>> import flambeau as torch
    >>> x = torch.tensor([[1., 10.], [3., 30.]])
    >>> torch.nn.functional.batch_norm(x, None, None, training=True)
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
    """
    _check_batch_norm(input, running_mean, running_var, training, eps)
    try:
        return batch_norm.body(input, weight, bias, running_mean, running_var, training, momentum,
                               eps, True)  # fmt: skip
    except (AttributeError, TypeError) as error:
        values = (input, weight, bias, running_mean, running_var, training, momentum, eps, True)
        raise explained(batch_norm, values, error) from None


# ---- instance norm


def _repeated(values: Any, times: int) -> Any:
    return None if values is None else values.repeat(times)


@composite(
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean,"
    " Tensor? running_var, bool use_input_stats, float momentum, float eps,"
    " bool cudnn_enabled) -> Tensor",
    method=False,
)
def instance_norm(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Any:
    """Batch norm of each sample on its own: samples are laid out as channels.

    Shapes: input and result [N, C, *], all others [C].

    >>> import flambeau as torch
    >>> x = torch.tensor([[[1., 3.], [10., 30.]]])
    >>> torch.instance_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    require_sizes(input.ndim, 0, 1)
    batch, channels = input.shape[:2]
    means, variances = _repeated(running_mean, batch), _repeated(running_var, batch)
    flat = input.contiguous().view(1, batch * channels, *input.shape[2:])
    result = ops.native_batch_norm(
        flat, _repeated(weight, batch), _repeated(bias, batch), means, variances, use_input_stats,
        momentum, eps,
    )[0]  # fmt: skip
    if use_input_stats:
        for running, repeated in ((running_mean, means), (running_var, variances)):
            if running is not None:
                running.detach().copy_(repeated.view(batch, channels).mean(0))
    return result.view(input.shape)


@functional()
def functional_instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Normalise each channel of each sample of [N, C, *].

    >>> import flambeau as torch
    >>> torch.nn.functional.instance_norm(torch.tensor([[[1., 3.], [10., 30.]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    if use_input_stats:
        count = 1
        for length in input.size()[2:]:
            count *= length
        if count == 1:
            raise ValueError(
                f"Expected more than 1 spatial element when training, got input size {input.size()}"
            )
    return ops.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats,
                             momentum, eps, True)  # fmt: skip
