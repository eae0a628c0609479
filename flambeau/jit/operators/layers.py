"""Larger operators whose schemas differ from flambeau's rows: convolution, recurrence, resizing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flambeau._ops.images.interpolate import BY_FACTORS, NEAREST, UPSAMPLE
from flambeau._ops.losses.distance import COMPUTE_MODES
from flambeau._ops.recurrent.cells import step
from flambeau._ops.table.namespace import get, ops
from flambeau._tensor.tensor import Tensor
from flambeau.jit.operators.forms import element_type
from flambeau.jit.operators.registry import implements


def functional() -> Any:
    """`flambeau.nn.functional`, imported when first needed."""
    from flambeau.nn import functional as found

    return found


# ---- convolution, embedding, softmax, loss


@implements("_convolution", "_convolution.deprecated", "convolution")
def convolution(input: Any, weight: Any, bias: Any, stride: list[int], padding: list[int],
                dilation: list[int], transposed: bool, output_padding: list[int], groups: int,
                *flags: bool) -> Any:  # fmt: skip
    """Convolution over all dims behind the second; the flags choose among other libraries."""
    spatial = input.ndim - 2
    lists = [_widened(v, spatial) for v in (stride, padding, dilation, output_padding)]
    strides, paddings, dilations, outputs = lists
    return ops.convolution(input, weight, bias, strides, paddings, dilations, transposed, outputs,
                           groups)  # fmt: skip


def _widened(values: list[int], count: int) -> list[int]:
    return values * count if len(values) == 1 else values


@implements("_convolution_mode")
def convolution_mode(input: Any, weight: Any, bias: Any, stride: list[int], padding: str,
                     dilation: list[int], groups: int) -> Any:  # fmt: skip
    """Convolution with padding "same" or "valid"."""
    function = get(f"conv{input.ndim - 2}d")
    return function(input, weight, bias, stride, padding, dilation, groups)


@implements("embedding")
def embedding(weight: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool,
              sparse: bool) -> Any:  # fmt: skip
    """Rows of a table."""
    padding = padding_idx if padding_idx >= 0 else None
    return functional().embedding(indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq,
                                  sparse=sparse)  # fmt: skip


@implements("_softmax")
def softmax(input: Any, dim: int, half_to_float: bool) -> Any:
    """Softmax over a dim."""
    return ops.softmax(input, dim)


@implements("_log_softmax")
def log_softmax(input: Any, dim: int, half_to_float: bool) -> Any:
    """The logarithm of softmax over a dim."""
    return ops.log_softmax(input, dim)


@implements("log_sigmoid")
def log_sigmoid(input: Any) -> Any:
    """The logarithm of sigmoid."""
    return functional().logsigmoid(input)


@implements("einsum")
def einsum(equation: str, operands: list[Any], path: list[int] | None) -> Any:
    """The sum of products that an equation says."""
    return get("einsum")(equation, *operands)


@implements("max_unpool3d")
def max_unpool3d(input: Any, indices: Any, size: list[int], stride: list[int], padding: list[int]
                 ) -> Any:  # fmt: skip
    """Zeros of a size, with values at their places; the windows that these stem from say no more
    than the size does.
    """
    return ops.max_unpool3d(input, indices, size)


@implements("relu6_")
def relu6_in_place(input: Any) -> Any:
    """Values below 0 become 0, those above 6 become 6."""
    return input.clamp_(0, 6)


@implements("gelu_")
def gelu_in_place(input: Any, approximate: str) -> Any:
    """GELU, written to the input."""
    return input.copy_(functional().gelu(input, approximate=approximate))


@implements("cdist")
def cdist(x1: Any, x2: Any, p: float, compute_mode: int | None) -> Any:
    """Programs say by a number how distances are to be computed."""
    return ops.cdist(x1, x2, p, tuple(COMPUTE_MODES)[compute_mode or 0])


@implements("_unique")
def unique(input: Any, sort: bool, inverse: bool) -> tuple[Any, Any]:
    """Values that occur, and where each one went."""
    return unique2(input, sort, inverse, False)[:2]


@implements("rsub.Scalar")
def subtracted_from(input: Any, other: Any, alpha: Any) -> Any:
    """`other - alpha * input`."""
    return other - input * alpha if alpha != 1 else other - input


@implements("_stack")
def stack(tensors: list[Any], dim: int) -> Any:
    """Tensors side by side along a new dim."""
    return ops.stack(tensors, dim)


@implements("_unique2")
def unique2(input: Any, sort: bool, inverse: bool, counts: bool) -> tuple[Any, Any, Any]:
    """Values that occur, where each one went, and how often it occurs."""
    found = get("unique")(input, sorted=sort, return_inverse=True, return_counts=True)
    empty = get("empty")(0, dtype=found[1].dtype)
    return found[0], found[1] if inverse else empty, found[2] if counts else empty


@implements("unique_consecutive")
def unique_consecutive(input: Any, inverse: bool, counts: bool, dim: int | None) -> Any:
    """Values without repetitions side by side, where each went, and how often it stood there."""
    found = get("unique_consecutive")(input, return_inverse=True, return_counts=True, dim=dim)
    if dim is not None:  # then torch always gives all three
        return tuple(found)
    empty = get("empty")(0, dtype=found[1].dtype)
    return found[0], found[1] if inverse else empty, found[2] if counts else empty


@implements("chain_matmul")
def chain_matmul(matrices: list[Any]) -> Any:
    """The product of several matrices."""
    return get("chain_matmul")(*matrices)


@implements("tensordot")
def tensordot(input: Any, other: Any, dims: list[int], other_dims: list[int]) -> Any:
    """The sum of products over pairs of dims."""
    return get("tensordot")(input, other, (dims, other_dims))


@implements("special_softmax")
def special_softmax(input: Any, dim: int, dtype: int | None) -> Any:
    """Softmax over a dim."""
    return functional().softmax(input, dim, dtype=element_type(dtype))


@implements("unique_dim")
def unique_dim(input: Any, dim: int, sort: bool, inverse: bool, counts: bool) -> Any:
    """Slices that occur along a dim, where each one went, and how often it occurs."""
    return get("unique")(input, sorted=sort, return_inverse=True, return_counts=True, dim=dim)


@implements("pad_sequence")
def pad_sequence(sequences: list[Any], batch_first: bool, value: float, side: str) -> Any:
    """Sequences of different lengths in one tensor."""
    from flambeau.nn.utils.rnn import pad_sequence as pad

    return pad(sequences, batch_first, value, side)


# ---- resizing


def _register_upsamples() -> None:
    for name, (mode, *_) in UPSAMPLE.items():
        implements(name)(_by_scales(name, mode not in NEAREST))
        implements(f"{name}.vec")(BY_FACTORS[name].body)


def _by_scales(name: str, has_corners: bool) -> Any:
    def upsample(input: Any, output_size: list[int], *rest: Any) -> Any:
        corners = bool(rest[0]) if has_corners else False
        scales = list(rest[1:] if has_corners else rest)
        factors = None if any(s is None for s in scales) else scales
        return getattr(ops, name)(input, output_size, corners, factors)

    return upsample


_register_upsamples()


@implements("__interpolate", "__interpolate.scale_list", "__interpolate.size_list",
            "__interpolate.size_list_scale_list")  # fmt: skip
def interpolate(input: Any, size: Any, scale_factor: Any, mode: str, align_corners: bool | None,
                recompute_scale_factor: bool | None, antialias: bool) -> Any:  # fmt: skip
    """Resize an image."""
    return functional().interpolate(input, size, scale_factor, mode, align_corners,
                                    recompute_scale_factor, antialias)  # fmt: skip


@implements("__upsample", "__upsample.size_list")
def upsample(input: Any, size: Any, factor: Any, mode: str, align_corners: bool | None) -> Any:
    """Resize an image, under an older name."""
    return functional().interpolate(input, size, factor, mode, align_corners)


# ---- recurrent layers


@dataclass(frozen=True, slots=True)
class _Weights:
    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None
    weight_hr: Tensor | None = None


def _weights(params: list[Any], biased: bool, projected: bool) -> list[_Weights]:
    """The weights of each layer and direction, of a flat list."""
    size = 2 + 2 * biased + projected
    made = []
    for start in range(0, len(params), size):
        group = params[start : start + size]
        biases = group[2:4] if biased else (None, None)
        made.append(
            _Weights(group[0], group[1], biases[0], biases[1], group[-1] if projected else None)
        )
    return made


def _run_layers(mode: str, input: Any, states: tuple[Any, ...], params: list[Any], biased: bool,
                layers: int, dropout: float, train: bool, bidirectional: bool,
                batch_sizes: list[int] | None) -> tuple[Any, list[Any]]:  # fmt: skip
    """All layers over (T, N, features) or packed rows: the outputs and the last states."""
    from flambeau._ops.recurrent.layers import is_one_operator
    from flambeau.nn.layers.rnn_steps import Direction

    single = is_one_operator(mode, input)
    projected = mode == "LSTM" and states[0].shape[2] != states[1].shape[2]
    weights = _weights(params, biased, projected)
    directions = 2 if bidirectional else 1
    last: list[tuple[Any, ...]] = []
    for layer in range(layers):
        outputs = []
        for side in range(directions):
            index = layer * directions + side
            start = tuple(state[index] for state in states)
            direction = Direction(mode, weights[index], single=single)
            if batch_sizes is None:
                output, end = direction.run(input, start, side == 1)
            else:
                output, end = direction.run_packed(input, batch_sizes, start, side == 1)
            outputs.append(output)
            last.append(end)
        input = outputs[0] if directions == 1 else ops.cat(outputs, -1)
        if dropout and train and layer < layers - 1:
            input = ops.dropout(input, dropout, True)
    return input, [ops.stack(list(parts)) for parts in zip(*last, strict=True)]


def _over_batch(mode: str, input: Any, states: tuple[Any, ...], params: list[Any], biased: bool,
                layers: int, dropout: float, train: bool, bidirectional: bool,
                batch_first: bool) -> tuple[Any, ...]:  # fmt: skip
    alone = input.ndim == 2
    if alone:
        input = input.unsqueeze(1)
        states = tuple(state.unsqueeze(1) if state.ndim == 2 else state for state in states)
    elif batch_first:
        input = input.transpose(0, 1)
    output, last = _run_layers(mode, input, states, params, biased, layers, dropout, train,
                               bidirectional, None)  # fmt: skip
    if alone:
        return output.squeeze(1), *(state.squeeze(1) for state in last)
    return output.transpose(0, 1) if batch_first else output, *last


@implements("lstm.input")
def lstm(input: Any, hx: list[Any], *rest: Any) -> tuple[Any, ...]:
    """An LSTM over a batch: outputs, last hidden and cell states."""
    return _over_batch("LSTM", input, tuple(hx), *rest)


@implements("lstm.data")
def lstm_packed(data: Any, batch_sizes: Any, hx: list[Any], params: list[Any], *rest: Any) -> Any:
    """An LSTM over a packed sequence."""
    output, last = _run_layers("LSTM", data, tuple(hx), params, *rest, batch_sizes.tolist())  # type: ignore[call-arg]
    return output, *last


def _register_single_state(name: str, mode: str) -> None:
    @implements(f"{name}.input")
    def over_batch(input: Any, hx: Any, *rest: Any) -> Any:
        return _over_batch(mode, input, (hx,), *rest)

    @implements(f"{name}.data")
    def packed(data: Any, batch_sizes: Any, hx: Any, params: list[Any], *rest: Any) -> Any:
        output, last = _run_layers(mode, data, (hx,), params, *rest, batch_sizes.tolist())  # type: ignore[call-arg]
        return output, last[0]

    @implements(f"{name}_cell")
    def cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
        return step(mode, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


for _name, _mode in {"gru": "GRU", "rnn_tanh": "RNN_TANH", "rnn_relu": "RNN_RELU"}.items():
    _register_single_state(_name, _mode)


@implements("lstm_cell")
def lstm_cell(input: Any, hx: list[Any], w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    """One step: the new hidden and cell states."""
    return tuple(step("LSTM", input, tuple(hx), w_ih, w_hh, b_ih, b_hh))


@implements("_pack_padded_sequence")
def pack_padded(input: Any, lengths: Any, batch_first: bool) -> Any:
    """The rows of sequences of decreasing length, step by step, and how many each step has."""
    from flambeau.nn.utils.rnn import pack_padded_sequence

    packed = pack_padded_sequence(input, lengths, batch_first)
    return packed.data, packed.batch_sizes


@implements("_pad_packed_sequence")
def pad_packed(data: Any, batch_sizes: Any, batch_first: bool, value: Any, total: int) -> Any:
    """Packed rows as a padded tensor, and the lengths."""
    from flambeau.nn.utils.rnn import PackedSequence, pad_packed_sequence

    packed = PackedSequence(data, batch_sizes)
    return pad_packed_sequence(packed, batch_first, value, total if total > 0 else None)


@implements("_weight_norm_interface")
def weight_norm_interface(direction: Any, size: Any, dim: int) -> Any:
    """`size * direction / norm` and the norm over all dims but one."""
    dims = [d for d in range(direction.ndim) if d != dim]
    norm = ops.linalg.vector_norm(direction, 2, dims, True)
    return direction * (size / norm), norm


@implements("frobenius_norm.dim")
def frobenius_norm(input: Any, dim: list[int], keepdim: bool) -> Any:
    """The root of the sum of squares."""
    return ops.linalg.vector_norm(input, 2, dim, keepdim)


@implements("special_logsumexp")
def logsumexp(input: Any, dim: list[int], keepdim: bool) -> Any:
    """The logarithm of a sum of exponentials."""
    return ops.logsumexp(input, dim, keepdim)


@implements("arange.start_step")
def arange(start: Any, end: Any, step: Any, dtype: int | None, layout: Any, place: Any,
           pin_memory: Any) -> Any:  # fmt: skip
    """Numbers from start to end."""
    return get("arange")(start, end, step, dtype=element_type(dtype), device=place)
