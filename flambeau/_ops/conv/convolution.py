"""Convolutions: `conv1d` to `conv3d`, their transposes, and gradients of every order.

A convolution is linear in its input and in its weight, so the two gradient maps are rows too and
each derivative of one of the three maps is another of them: with `y = conv(x, w)`,
`<c, input_grad(g, w)> = <conv(c, w), g>` and `<c, weight_grad(g, x)> = <conv(x, c), g>`.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._core.settings import get_num_threads, warn_once
from flambeau._core.settled import settled
from flambeau._core.type_words import type_words
from flambeau._ops.conv import choice as kernels
from flambeau._ops.conv.shapes import (
    check_input_rank,
    check_numbers,
    check_ranks,
    check_weight,
    conv_output_shape,
    conv_transpose_output_shape,
    expand_ints,
    same_padding,
)
from flambeau._ops.launching.epilogue import NOTHING, Epilogue
from flambeau._ops.launching.memory_formats import in_format, is_signal_last, is_suggested_last
from flambeau._ops.table import binder
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import BY_NAME, Folded, InAten, alias, composite, kernel
from flambeau._ops.table.outputs import check_cast
from flambeau.autograd.saved_fields import OfInput

NUMBERS = ("int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, "
           "int groups")  # fmt: skip
ONEDNN_BATCH, ONEDNN_KERNEL, ONEDNN_SIZE = 16, 3, 20480
"""From which sizes on torch asks oneDNN for convolutions of volumes."""
LOPSIDED = (
    "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy "
    "of the input be created"
)


def _gradients(grad: Any, input: Any, weight: Any, stride: Any, padding: Any, dilation: Any,
               transposed: bool, output_padding: Any, groups: int,
               wanted: tuple[bool, ...]) -> tuple[Any, Any, Any]:  # fmt: skip
    numbers = (stride, padding, dilation, transposed, output_padding, groups)
    bias_size = weight._data.shape[1] * groups if transposed else weight._data.shape[0]
    found: list[Any] = [None, None, None]
    if wanted[0]:
        found[0] = ops._conv_input_grad(grad, weight, input._data.shape, *numbers)
    if wanted[1]:
        found[1] = ops._conv_weight_grad(grad, input, weight._data.shape, *numbers)
    if wanted[2]:
        found[2] = ops._conv_bias_grad(grad) if grad._data.size else ops.new_zeros(grad, bias_size)
    return tuple(found)  # type: ignore[return-value]


@kernel(f"convolution(Tensor input, Tensor weight, Tensor? bias, {NUMBERS}) -> Tensor",
        batch=Folded(-1, ("weight", "bias")), autocast="lower",
        saved_facts={"bias_sym_sizes_opt": OfInput("bias", absent=(0,))},
        backward={("input", "weight", "bias"): _gradients})  # fmt: skip
def convolution(input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, stride: Any,
                padding: Any, dilation: Any, transposed: bool, output_padding: Any,
                groups: int) -> np.ndarray:  # fmt: skip
    """Input `(N, C, *spatial)` with weight `(O, C / groups, *kernel)`; transposed: `(C, O / g, *)`.

    Raises RuntimeError where shapes or element types do not go together.

    >>> import flambeau as torch
    >>> image, weight = torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3)
    >>> torch.convolution(image, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1).shape
    torch.Size([1, 4, 8, 8])
    """
    numbers = (stride, padding, dilation, transposed, output_padding, groups)
    try:
        return convolved(input, weight, bias, *numbers)
    except (RuntimeError, ValueError):
        _check_numbers(weight, groups, stride, padding, dilation, output_padding)
        raise


def _check_numbers(weight: np.ndarray, groups: int, *numbers: Any) -> None:
    """Torch's error for a weight without dims, or numbers that are not one for each of them."""
    if weight.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions") from None
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported") from None
    spatial = weight.ndim - 2
    for name, given in zip(("stride", "padding", "dilation", "output_padding"), numbers,
                           strict=True):  # fmt: skip
        if len(given) not in (1, spatial):
            raise RuntimeError(
                f"expected {name} to be a single integer value or a list of {spatial} values to "
                f"match the convolution dimensions, but got {name}={list(given)}"
            ) from None


def convolved(input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, stride: Any,
              padding: Any, dilation: Any, transposed: bool, output_padding: Any, groups: int,
              packed: kernels.PackedWeight | None = None,
              after: Epilogue = NOTHING) -> np.ndarray:  # fmt: skip
    """`convolution`, of a weight that is packed already, and with what comes after it."""
    bias_shape = None if bias is None else bias.shape
    if transposed:
        shape = conv_transpose_output_shape(
            input.shape, weight.shape, bias_shape, stride, padding, output_padding, dilation,
            groups)  # fmt: skip
    else:
        shape = conv_output_shape(
            input.shape, weight.shape, bias_shape, stride, padding, dilation, groups)  # fmt: skip
    if bias is not None and bias.dtype is not input.dtype:
        _check_bias_type(input.dtype, bias.dtype, transposed)
    if input.dtype is not weight.dtype or input.dtype.kind in "biu":
        _check_types(input, weight, transposed)
    if 0 in shape or 0 in input.shape:
        result = np.zeros(shape, input.dtype)
        result = result if bias is None else kernels.add_bias(result, bias, input.dtype)
        return after.applied(result)
    if transposed:
        result = kernels.conv_transpose(
            input, weight, bias, stride, padding, output_padding, dilation, groups)  # fmt: skip
    else:
        result = kernels.conv(
            input, packed or weight, bias, stride, padding, dilation, groups, after)  # fmt: skip
    if input.ndim == 3:  # torch makes rows of the input first
        last = is_signal_last(weight) or (input.flags.c_contiguous and is_signal_last(input))
    else:
        last = is_suggested_last(weight) or is_suggested_last(input)
    numbers = (stride, dilation, groups)
    grows = transposed and any(n >= step for n, step in zip(output_padding, stride, strict=True))
    return in_format(result, last and _keeps_format(input, weight, grows, *numbers))


def _keeps_format(input: np.ndarray, weight: np.ndarray, grows: bool, stride: Any, dilation: Any,
                  groups: int) -> bool:  # fmt: skip
    """Whether a result may be channels-last: of volumes, where torch takes oneDNN's way, which
    small ones in float32 are not worth."""
    if input.ndim < 5:
        return True
    if input.dtype == dt.bfloat16.numpy_dtype:
        return not grows
    if grows or input.dtype != np.float32:
        return False
    batch, sizes = input.shape[0], weight.shape[-2:]
    moves = max(*stride, *dilation) > 1 or batch >= ONEDNN_BATCH
    if not moves and sizes == (1, 1) and get_num_threads() == 1:
        return False
    return groups > 1 or batch > 1 or min(sizes) > ONEDNN_KERNEL or (
        prod(input.shape[:4]) > ONEDNN_SIZE)  # fmt: skip


def _scalar_name(numpy_dtype: Any) -> str:
    return dt.from_numpy_dtype(numpy_dtype).scalar_name


def _type_words(numpy_dtype: Any) -> str:
    return type_words(dt.from_numpy_dtype(numpy_dtype))


def _check_types(input: np.ndarray, weight: np.ndarray, transposed: bool) -> None:
    """The convolution has the element type of the input, which the weight shares."""
    name, other = _scalar_name(input.dtype), _scalar_name(weight.dtype)
    if name != other and (input.dtype.kind == "c" or name == "BFloat16"):
        given, wanted = _type_words(input.dtype), _type_words(weight.dtype)
        way_out = " or input should be a MKLDNN tensor and weight is a dense tensor"
        raise RuntimeError(f"Input type ({given}) and weight type ({wanted}) should be the same"
                           f"{way_out if name == 'BFloat16' else ''}")  # fmt: skip
    refused = "Bool Byte Char Short Int" if transposed else "Bool"
    if name in refused.split():
        spatial = 3 if input.ndim == 5 else 2
        label = f"conv_transpose{spatial}d_out" if transposed else f"conv{spatial}d"
        raise NotImplementedError(f"\"slow_{label}_cpu\" not implemented for '{name}'")
    if name != other:
        raise RuntimeError(f"expected scalar type {name} but found {other}")


# ---- the gradient maps


@composite(f"convolution_backward(Tensor grad_output, Tensor input, Tensor weight, int[]? "
           f"bias_sizes, {NUMBERS}, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
           method=False, function=False)  # fmt: skip
def convolution_backward(grad_output: Any, input: Any, weight: Any, bias_sizes: Any, stride: Any,
                         padding: Any, dilation: Any, transposed: bool, output_padding: Any,
                         groups: int, output_mask: Any) -> Any:  # fmt: skip
    """ATen's name for all gradients of a convolution; None for what `output_mask` leaves out."""
    numbers = (stride, padding, dilation, transposed, output_padding, groups)
    return _gradients(grad_output, input, weight, *numbers, output_mask)


def _input_grad_in_aten(grad_output: Any, weight: Any, input_size: Any, *numbers: Any) -> InAten:
    input = grad_output.new_empty(input_size)
    given = (grad_output, input, weight, None, *map(_listed, numbers), [True, False, False])
    return InAten("convolution_backward", given, pick=0)


def _weight_grad_in_aten(grad_output: Any, input: Any, weight_size: Any, *numbers: Any) -> InAten:
    weight = grad_output.new_empty(weight_size)
    given = (grad_output, input, weight, None, *map(_listed, numbers), [False, True, False])
    return InAten("convolution_backward", given, pick=1)


def _listed(number: Any) -> Any:
    return list(number) if isinstance(number, tuple) else number


@kernel(f"_conv_input_grad(Tensor grad_output, Tensor weight, int[] input_size, {NUMBERS})"
        " -> Tensor", batch=Folded(-1, ("weight", "bias")), function=False,
        node="ConvolutionBackwardBackward0", aten=_input_grad_in_aten, backward={
    "grad_output": lambda grad, weight, stride, padding, dilation, transposed, output_padding,
    groups: ops.convolution(grad, weight, None, stride, padding, dilation, transposed,
                            output_padding, groups),
    "weight": lambda grad, grad_output, weight_shape, stride, padding, dilation, transposed,
    output_padding, groups: ops._conv_weight_grad(
        grad_output, grad, weight_shape, stride, padding, dilation, transposed, output_padding,
        groups),
})  # fmt: skip
def _conv_input_grad(grad_output: np.ndarray, weight: np.ndarray, input_size: Any, stride: Any,
                     padding: Any, dilation: Any, transposed: bool, output_padding: Any,
                     groups: int) -> np.ndarray:  # fmt: skip
    """The gradient of a convolution with respect to its input."""
    function = kernels.conv_transpose_backward_input if transposed else kernels.conv_backward_input
    if grad_output.size == 0:
        return np.zeros(input_size, grad_output.dtype)
    return function(grad_output, weight, input_size, stride, padding, dilation, groups)


@kernel(f"_conv_weight_grad(Tensor grad_output, Tensor input, int[] weight_size, {NUMBERS})"
        " -> Tensor", function=False, node="ConvolutionBackwardBackward0",
        aten=_weight_grad_in_aten, backward={
    "grad_output": lambda grad, input, stride, padding, dilation, transposed, output_padding,
    groups: ops.convolution(input, grad, None, stride, padding, dilation, transposed,
                            output_padding, groups),
    "input": lambda grad, grad_output, input_shape, stride, padding, dilation, transposed,
    output_padding, groups: ops._conv_input_grad(
        grad_output, grad, input_shape, stride, padding, dilation, transposed, output_padding,
        groups),
})  # fmt: skip
def _conv_weight_grad(grad_output: np.ndarray, input: np.ndarray, weight_size: Any, stride: Any,
                      padding: Any, dilation: Any, transposed: bool, output_padding: Any,
                      groups: int) -> np.ndarray:  # fmt: skip
    """The gradient of a convolution with respect to its weight."""
    function = (
        kernels.conv_transpose_backward_weight if transposed else kernels.conv_backward_weight
    )
    if grad_output.size == 0 or input.size == 0:
        return np.zeros(weight_size, grad_output.dtype)
    return function(grad_output, input, weight_size, stride, padding, dilation, groups)


@kernel("_conv_bias_grad(Tensor grad_output) -> Tensor", function=False,
        batch=lambda grad_output: grad_output.sum([0, *range(2, grad_output.dim())]),
        decomposition=lambda grad_output: grad_output.sum([0, *range(2, grad_output.dim())]),
        node="ConvolutionBackwardBackward0", backward={
    "grad_output": lambda grad, grad_output_shape: (
        grad.reshape((-1, *(1,) * (len(grad_output_shape) - 2))).expand(grad_output_shape)),
})  # fmt: skip
def _conv_bias_grad(grad_output: np.ndarray) -> np.ndarray:
    """The gradient of a convolution with respect to its bias."""
    return kernels.conv_backward_bias(grad_output)


# ---- the public functions


def _is_left_out(value: Any, argument: Any) -> bool:
    """Whether an argument has its default, which its caller need not have given."""
    return value.__class__ is argument.default.__class__ and value == argument.default


def _wrong_arguments(name: str, values: tuple[Any, ...], error: Exception) -> Exception:
    """Torch's TypeError where an argument has the wrong type, else the error itself."""
    rows = BY_NAME[name]
    numbers = tuple(0 if isinstance(value, str) else value for value in values)
    if binder.bind(rows[0], numbers, {}) is not None:
        return error
    if "transpose" in name:  # which has one form
        missing = tuple(argument.default for argument in rows[0].schema.arguments[len(values) :])
        return binder.argument_error(rows[0], [*values, *missing]) or error
    while _is_left_out(values[-1], rows[0].schema.arguments[len(values) - 1]):
        values = values[:-1]
    return binder.no_overload_error(name, rows, values, {})


def _convolve(name: str, spatial: int, input: Any, weight: Any, bias: Any, stride: Any,
              padding: Any, dilation: Any, groups: int,
              output_padding: Any = 0) -> Any:  # fmt: skip
    """What the public functions share: numbers for each dim, and inputs without a batch dim."""
    transposed = "transpose" in name
    if transposed and isinstance(padding, str):
        raise TypeError(f"{name}(): argument 'padding' must be tuple of ints, not str")
    if bias is not None and bias._data.dtype is not input._data.dtype and not modes.watch.active:
        _check_bias_type(input._data.dtype, bias._data.dtype, transposed)
    batched = input._data.ndim == spatial + 2
    if not batched:
        check_input_rank(name, input._data.shape, spatial)
        input = ops.unsqueeze(input, 0)
    stride, padding, dilation, extra = _expanded(
        spatial, weight._data.ndim, groups, stride, padding, dilation, output_padding
    )
    if isinstance(padding, str):
        input, padding = _named_padding(padding, input, weight, stride, dilation, groups)
    result = ops.convolution(
        input, weight, bias, stride, padding, dilation, transposed, extra, groups
    )
    return result if batched else ops.squeeze(result, 0)


@settled
def _expanded(spatial: int, rank: int, groups: int, stride: Any, padding: Any, dilation: Any,
              output_padding: Any) -> tuple[Any, ...]:  # fmt: skip
    """The numbers for each dim, but padding that has a name. Dims are counted by the weight's
    rank, as torch does; where it is not the input's, that is refused later."""
    dims = spatial
    if not isinstance(padding, str):
        check_weight(rank, groups)
        dims = rank - 2
    given = {"stride": stride, "padding": padding, "dilation": dilation,
             "output_padding": output_padding}  # fmt: skip
    for name, value in given.items():
        if isinstance(value, (int, np.integer)):
            value = (int(value),) * (spatial if spatial > 1 else 1)
        if not isinstance(value, str):
            given[name] = expand_ints(name, value, dims)
    return tuple(given.values())


def _check_bias_type(input_type: Any, bias_type: Any, transposed: bool) -> None:
    name, other = _scalar_name(input_type), _scalar_name(bias_type)
    if name == other:
        return
    if not transposed:
        given, wanted = (dt.from_numpy_dtype(kind).c_name for kind in (input_type, bias_type))
        raise RuntimeError(f"Input type ({given}) and bias type ({wanted}) should be the same")
    if "c" in (input_type.kind, bias_type.kind):
        given, wanted = _type_words(input_type), _type_words(bias_type)
        raise RuntimeError(f"Input type ({given}) and bias type ({wanted}) should be the same")
    check_cast(bias_type, input_type)


def _named_padding(padding: str, input: Any, weight: Any, stride: Any, dilation: Any,
                   groups: int) -> tuple[Any, tuple[int, ...]]:  # fmt: skip
    """'same' and 'valid' as numbers; where 'same' is lopsided, the input with the rest put on."""
    none = (0,) * len(stride)
    if padding == "valid":
        return input, none
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    shape = weight._data.shape
    check_numbers(stride, none, dilation, none, groups)
    check_ranks(input._data.shape, shape, groups)
    before, after = same_padding(shape, stride, dilation)
    if before != after:
        warn_once(LOPSIDED, 5)
        more = [high - low for low, high in zip(before, after, strict=True)]
        input = ops.constant_pad_nd(input, [n for extra in reversed(more) for n in (0, extra)])
    return input, before


def _convolution_row(spatial: int) -> Any:
    name = f"conv{spatial}d"
    size = f"int[{spatial}]"

    @composite(f"{name}(Tensor input, Tensor weight, Tensor? bias=None, {size} stride=1, "
               f"{size} padding=0, {size} dilation=1, int groups=1) -> Tensor",
               bare=True, builtin=True, regular=True)  # fmt: skip
    def convolution(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
                    dilation: Any = 1, groups: int = 1) -> Any:  # fmt: skip
        """Slide `weight` `(O, C / groups, *kernel)` over `input` `(N, C, *spatial)`, N optional.

        bias: a number for each of the O filters.
        stride: steps from one place to the next; one number, or one for each dim, as below.
        padding: zeros on both sides; also 'valid' (none) or 'same' (the size stays).
        dilation: the distance of the places that a filter reads.
        groups: into how many parts channels are split, each with filters of its own.

        A size n becomes floor((n + 2 padding - dilation (kernel - 1) - 1) / stride) + 1.

        >>> import flambeau as torch
        >>> torch.nn.functional.conv2d(torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3)).shape
        torch.Size([1, 4, 6, 6])
        """
        values = (input, weight, bias, stride, padding, dilation, groups)
        try:
            return _convolve(name, spatial, *values)
        except Exception as error:
            raise _wrong_arguments(name, values, error) from None

    return convolution


def _transposed_row(spatial: int) -> Any:
    name = f"conv_transpose{spatial}d"
    size = f"int[{spatial}]"

    @composite(f"{name}.input(Tensor input, Tensor weight, Tensor? bias=None, {size} stride=1, "
               f"{size} padding=0, {size} output_padding=0, int groups=1, {size} dilation=1)"
               " -> Tensor", bare=True, builtin=True)  # fmt: skip
    def convolution(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
                    output_padding: Any = 0, groups: int = 1,
                    dilation: Any = 1) -> Any:  # fmt: skip
        """The transposed convolution of `input` with `weight` `(C, O / groups, *kernel)`.

        Each output size is (size - 1) * stride - 2 * padding + dilation * (kernel - 1) +
        output_padding + 1.

        >>> import flambeau as torch
        >>> torch.conv_transpose1d(torch.tensor([[[1., 2.]]]), torch.ones(1, 1, 2), stride=2)
        tensor([[[1., 1., 2., 2.]]])
        """
        values = (input, weight, bias, stride, padding, dilation, groups, output_padding)
        try:
            return _convolve(name, spatial, *values)
        except Exception as error:
            values = (*values[:5], output_padding, groups, dilation)
            raise _wrong_arguments(name, values, error) from None

    return convolution


for _spatial in (1, 2, 3):
    _convolution_row(_spatial)
    _transposed_row(_spatial)
    alias(f"nn.functional.conv{_spatial}d", f"conv{_spatial}d")
    alias(f"nn.functional.conv_transpose{_spatial}d", f"conv_transpose{_spatial}d")


@composite(
    "conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
    builtin=True,
    method=False,
)
def conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """A convolution over time: input `(T, B, C)`, weight `(kernel, C, O)`, result `(T', B, O)`.

    >>> import flambeau as torch
    >>> torch.conv_tbc(torch.ones(4, 1, 2), torch.ones(3, 2, 1), torch.zeros(1)).shape
    torch.Size([2, 1, 1])
    """
    if input._data.ndim != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight._data.ndim != 3:
        raise RuntimeError(
            "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels."
        )
    if bias._data.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    result = ops.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad)
    return result.permute(2, 0, 1)


alias("nn.functional.conv_tbc", "conv_tbc")
