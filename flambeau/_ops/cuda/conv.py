"""Convolutions on GPUs: cuDNN's graph interface; where every tap is a pixel, products.

Memory stays in the format it comes in: channels-last where input or weight are so, else row-major.
Without cuDNN, or where it has no engine, the host computes.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

from flambeau._core import precision
from flambeau._core.cudnn_settings import Cudnn
from flambeau._core.layout import channels_last_strides, contiguous_strides
from flambeau._core.settings import Determinism
from flambeau._ops.conv.shapes import conv_output_shape, conv_transpose_output_shape
from flambeau._ops.cuda import products
from flambeau._ops.cuda.products import LEFT, RIGHT, multiply, zeroed
from flambeau._ops.cuda.repeating import repeated, told
from flambeau._ops.cuda.table import on_gpu
from flambeau._ops.launching.memory_formats import is_signal_last, is_suggested_last
from flambeau._ops.table.namespace import ops
from flambeau._runtime.cpu import address, element_strides
from flambeau._runtime.cuda.libraries.cublaslt import Unsupported
from flambeau._runtime.cuda.libraries.cudnn import Convolution, Plan, Wishes, convolution
from flambeau._runtime.cuda.libraries.finding import MissingLibrary
from flambeau._runtime.cuda.libraries.matrices import Array
from flambeau._runtime.cuda.memory import Current
from flambeau._tensor import device_array
from flambeau._tensor.tensor import wrap

LETTERS = {"f": "float32", "d": "float64", "e": "float16", "E": "bfloat16"}
PLANS: dict[Any, Any] = {}
"""All that a plan depends on -> the plan; None where there is no engine."""
KINDS = ("data", "filter", "forward")
"""The maps that give x, w and y."""
DEEP = 32
"""Channels from which on images of half types are channels-last inside."""
SEVERAL = 4
"""Images from which on the gradient of a weight of single taps is left to cuDNN: products would be
one for each."""


# ---- memory


def is_last(input: Any, weight: Any) -> bool:
    """Whether results are channels-last, by torch's rule."""
    if input.ndim == 3:
        return is_signal_last(weight) or (input.flags.c_contiguous and is_signal_last(input))
    return is_suggested_last(weight) or is_suggested_last(input)


def strides_for(shape: tuple[int, ...], last: bool) -> tuple[int, ...]:
    """Strides of `(N, C, *spatial)`, channels-last or row-major."""
    if not last:
        return tuple(contiguous_strides(shape))
    if len(shape) == 3:
        return shape[1] * shape[2], 1, shape[1]
    return tuple(channels_last_strides(shape))


def empty(shape: tuple[int, ...], last: bool, like: Any) -> Any:
    """New memory on the current device."""
    return device_array.empty(shape, strides_for(shape, last), like.dtype, Current.device)


def arranged(data: Any, last: bool) -> Any:
    """The array itself, or copied if its memory is in another format. Strides of dims of size 1
    say nothing."""
    wanted = strides_for(data.shape, last)
    have = element_strides(data)
    if all(n == 1 or a == b for n, a, b in zip(data.shape, have, wanted, strict=True)):
        return data
    result = empty(data.shape, last, data)
    device_array.assigned[0](result, data)
    return result


# ---- through cuDNN


def allows_tf32() -> bool:
    """Whether convolutions of float32 may be rounded to TF32: what `allow_tf32` says."""
    return precision.fp32_precision(precision.CUDA, "conv") == "tf32"


def is_last_inside(x: tuple[int, ...], w: tuple[int, ...], dtype: Any) -> bool:
    """Whether row-major images of half types are worth two transposing copies: cuDNN is then twice
    as fast (an H100: 25 us for 57, and 9 for each copy)."""
    deep = min(w[0], w[1]) >= DEEP and w[0] % 8 == w[1] % 8 == 0
    return dtype.itemsize == 2 and len(x) == 4 and x[1] == w[1] and deep and prod(w[2:]) > 1


def computed(kind: str, x: Any, w: Any, y: Any, numbers: tuple[Any, ...], last: bool,
             bias: Any = None) -> Any:  # fmt: skip
    """One of the three maps: its result, in the format that `last` says, in place of which its
    shape is given. NotImplemented where cuDNN does not compute it."""
    place = KINDS.index(kind)
    given = [x, w, y]
    other = given[(place + 1) % 3]
    shapes = [array if array.__class__ is tuple else array.shape for array in given]
    inside = last or is_last_inside(shapes[0], shapes[1], other.dtype)
    arrays = [
        empty(array, inside, other) if array.__class__ is tuple else arranged(array, inside)
        for array in given
    ]
    if not run(kind, arrays[0], arrays[1], arrays[2], numbers, inside, bias):
        return NotImplemented
    return arranged(arrays[place], last)


def run(kind: str, x: Any, w: Any, y: Any, numbers: tuple[Any, ...], last: bool,
        bias: Any = None) -> bool:  # fmt: skip
    """Compute one of the three maps into the array that is its result; False where cuDNN does not.

    `numbers`: padding, stride, dilation. Arrays lie in the format that `last` says.
    """
    if not Cudnn.enabled:
        return False
    arrays = [x, w, y] if bias is None else [x, w, y, bias]
    places = [address(array) for array in arrays]
    low = (places[0] | places[1] | places[2] | places[-1]) & 15
    tf32, fixed = allows_tf32(), Cudnn.deterministic or Determinism.enabled
    limit = Cudnn.limit()
    key = (kind, x.dtype.char, x.shape, w.shape, y.shape, numbers, last, bias is None, low & -low,
           tf32, fixed, limit, Current.device)  # fmt: skip
    plan = PLANS.get(key, PLANS)
    if plan is PLANS:
        formats = [Array(array.shape, strides_for(array.shape, last)) for array in (x, w, y)]
        asked = Convolution(
            kind, LETTERS[x.dtype.char], formats[0], formats[1], formats[2], numbers[0], numbers[1],
            numbers[2], biased=bias is not None, alignment=low & -low or 16,
        )  # fmt: skip
        plan = PLANS[key] = _planned(asked, Wishes(tf32, fixed, limit))
    if plan is None:
        return False
    place = KINDS.index(kind)
    told(partial(plan.run, scratch=(place, (x, w, y)[place].nbytes)), arrays)
    return True


def settings() -> tuple[Any, ...]:
    """What convolutions depend on besides their operands."""
    return (Cudnn.enabled, Cudnn.deterministic, Cudnn.limit(), allows_tf32(),
            *products.settings())  # fmt: skip


def _planned(asked: Convolution, wishes: Wishes) -> Plan | None:
    try:
        return convolution(asked, wishes)
    except (Unsupported, MissingLibrary):
        return None


def plus_bias(result: Any, bias: Any) -> Any:
    """The result with a bias `(O,)` added."""
    if bias is None or result is NotImplemented:
        return result
    shape = (-1, *(1,) * (result.ndim - 2))
    return ops.add(wrap(result), wrap(bias.reshape(shape)))._data


# ---- rows


def _usable(*arrays: Any) -> bool:
    """All are on a device, of one type that is computed here."""
    given = [array for array in arrays if array is not None]
    first = given[0].dtype
    return first.char in LETTERS and all(
        isinstance(array, device_array.DeviceArray) and array.dtype == first for array in given
    )


@on_gpu("convolution")
@partial(repeated, state=settings)
def forward(input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
            transposed: bool, output_padding: Any, groups: int) -> Any:  # fmt: skip
    """Input `(N, C, *spatial)` with weight `(O, C / groups, *kernel)`; transposed: `(C, O / g, *)`.

    Raises RuntimeError where shapes do not go together.
    """
    numbers = tuple(padding), tuple(stride), tuple(dilation)
    of_bias = None if bias is None else bias.shape
    if transposed:
        shape = conv_transpose_output_shape(input.shape, weight.shape, of_bias, stride, padding,
                                            output_padding, dilation, groups)  # fmt: skip
    else:
        shape = conv_output_shape(input.shape, weight.shape, of_bias, stride, padding, dilation,
                                  groups)  # fmt: skip
    if not _usable(input, weight, bias):
        return NotImplemented
    last = is_last(input, weight)
    if 0 in shape or 0 in input.shape:
        return plus_bias(zeroed(empty(shape, last, input)), bias)
    if transposed:
        found = to_input(input, weight, shape, numbers, groups, last)
        return plus_bias(found, bias)
    if is_pointwise(weight.shape, numbers, groups):
        found = pointwise(input, weight, bias, last)
        if found is not NotImplemented:
            return found
    return through_cudnn(input, weight, bias, shape, numbers, last)


def through_cudnn(input: Any, weight: Any, bias: Any, shape: tuple[int, ...],
                  numbers: tuple[Any, ...], last: bool) -> Any:  # fmt: skip
    """A convolution with its bias in one pass, if there is an engine for that, else in two."""
    if bias is not None:
        found = computed("forward", input, weight, shape, numbers, last, arranged_bias(bias))
        if found is not NotImplemented:
            return found
    return plus_bias(computed("forward", input, weight, shape, numbers, last), bias)


def arranged_bias(bias: Any) -> Any:
    """A bias whose numbers lie side by side."""
    dense = bias.size == 1 or bias.strides[0] == bias.itemsize
    return bias if dense else device_array.contiguous(bias)


def to_input(grad: Any, weight: Any, shape: tuple[int, ...], numbers: tuple[Any, ...], groups: int,
             last: bool) -> Any:  # fmt: skip
    """The adjoint of a convolution: `(N, O, *output)` back to an input of a shape."""
    if is_pointwise(weight.shape, numbers, groups):
        found = pointwise_to_input(grad, weight, last)
        if found is not NotImplemented:
            return found
    return computed("data", shape, weight, grad, numbers, last)


@on_gpu("_conv_input_grad")
@partial(repeated, state=settings)
def input_grad(grad: Any, weight: Any, input_size: Any, stride: Any, padding: Any, dilation: Any,
               transposed: bool, output_padding: Any, groups: int) -> Any:  # fmt: skip
    """The gradient of a convolution with respect to its input."""
    if not _usable(grad, weight):
        return NotImplemented
    numbers, shape = (tuple(padding), tuple(stride), tuple(dilation)), tuple(input_size)
    last = is_last(grad, weight)
    if 0 in shape or 0 in grad.shape:
        return zeroed(empty(shape, last, grad))
    if not transposed:
        return to_input(grad, weight, shape, numbers, groups, last)
    covered = _covered(grad.shape, weight.shape, numbers)
    whole = through_cudnn(grad, weight, None, covered, numbers, last)
    if whole is NotImplemented or whole.shape == shape:
        return whole
    # Windows of the output padding alone reach further than the input did.
    return whole[tuple(slice(n) for n in shape)]


def _covered(shape: tuple[int, ...], weight: tuple[int, ...],
             numbers: tuple[Any, ...]) -> tuple[int, ...]:  # fmt: skip
    """The shape that the convolution gives of which a transposed one is the adjoint."""
    sizes = [
        (n + 2 * pad - gap * (taps - 1) - 1) // step + 1
        for n, taps, pad, step, gap in zip(shape[2:], weight[2:], *numbers, strict=True)
    ]
    return (shape[0], weight[0], *sizes)


@on_gpu("_conv_weight_grad")
@partial(repeated, state=settings)
def weight_grad(grad: Any, input: Any, weight_size: Any, stride: Any, padding: Any, dilation: Any,
                transposed: bool, output_padding: Any, groups: int) -> Any:  # fmt: skip
    """The gradient of a convolution with respect to its weight."""
    if not _usable(grad, input):
        return NotImplemented
    numbers, shape = (tuple(padding), tuple(stride), tuple(dilation)), tuple(weight_size)
    last = is_last(input, grad)
    if 0 in shape or 0 in grad.shape or 0 in input.shape:
        return zeroed(empty(shape, last, grad))
    x, y = (grad, input) if transposed else (input, grad)
    if transposed and _covered(grad.shape, shape, numbers) != input.shape:
        return NotImplemented
    if is_pointwise(shape, numbers, groups):
        found = pointwise_to_weight(x, y, shape, last)
        if found is not NotImplemented:
            return found
    return computed("filter", x, shape, y, numbers, last)


@on_gpu("_conv_bias_grad")
@partial(repeated, state=settings)
def bias_grad(grad: Any) -> Any:
    """The gradient of a convolution with respect to its bias: the sum over images and positions."""
    if not _usable(grad):
        return NotImplemented
    return ops.sum(wrap(grad), [0, *range(2, grad.ndim)])._data


# ---- kernels of one tap: products


def is_pointwise(weight_shape: tuple[int, ...], numbers: tuple[Any, ...], groups: int) -> bool:
    """Whether each output is the product of the weight and one pixel."""
    padding, stride, _ = numbers
    plain = set(stride) == {1} and not any(padding)
    return groups == 1 and plain and prod(weight_shape[2:]) == 1


def _planes(data: Any) -> Any:
    """[N, C, *spatial] in row-major memory as [N, C, positions]."""
    return data.reshape(*data.shape[:2], -1)


def _pixels(data: Any) -> Any:
    """[N, C, *spatial] in channels-last memory as [N * positions, C]."""
    order = (0, *range(2, data.ndim), 1)
    return data.transpose(order).reshape(-1, data.shape[1])


def _images(pixels: Any, like: Any, channels: int) -> Any:
    """[N * positions, C] as channels-last images."""
    whole = pixels.reshape(len(like), *like.shape[2:], channels)
    return whole.transpose(0, like.ndim - 1, *range(1, like.ndim - 1))


def _matrix(weight: Any) -> Any:
    return weight.reshape(weight.shape[:2])


def pointwise(input: Any, weight: Any, bias: Any, last: bool) -> Any:
    """A convolution of one tap."""
    data, matrix = arranged(input, last), _matrix(weight)
    if not last:
        found = multiply(matrix, _planes(data), tf32=allows_tf32())
        shape = (len(input), len(weight), *input.shape[2:])
        return found if found is NotImplemented else plus_bias(found.reshape(shape), bias)
    found = NotImplemented
    if bias is not None:
        found = products.biased(_pixels(data), matrix, bias, turned=RIGHT, tf32=allows_tf32())
    if found is not NotImplemented:
        return _images(found, input, len(weight))
    found = multiply(_pixels(data), matrix, turned=RIGHT, tf32=allows_tf32())
    if found is NotImplemented:
        return found
    return plus_bias(_images(found, input, len(weight)), bias)


def pointwise_to_input(grad: Any, weight: Any, last: bool) -> Any:
    """The gradient of its input."""
    data, matrix = arranged(grad, last), _matrix(weight)
    if last:
        found = multiply(_pixels(data), matrix, tf32=allows_tf32())
        return found if found is NotImplemented else _images(found, grad, weight.shape[1])
    found = multiply(matrix, _planes(data), turned=LEFT, tf32=allows_tf32())
    shape = (len(grad), weight.shape[1], *grad.shape[2:])
    return found if found is NotImplemented else found.reshape(shape)


def pointwise_to_weight(input: Any, grad: Any, shape: tuple[int, ...], last: bool) -> Any:
    """The gradient of its weight: a sum over images."""
    x, y = arranged(input, last), arranged(grad, last)
    if last:
        found = multiply(_pixels(y), _pixels(x), turned=LEFT, tf32=allows_tf32())
        return found if found is NotImplemented else found.reshape(shape)
    if len(x) > SEVERAL:
        return NotImplemented
    planes, total = (_planes(x), _planes(y)), NotImplemented
    for image in range(len(x)):
        total = multiply(planes[1][image], planes[0][image],
                         None if image == 0 else total, 1, int(image > 0),
                         turned=RIGHT, tf32=allows_tf32())  # fmt: skip
        if total is NotImplemented:
            return total
    return total.reshape(shape)
