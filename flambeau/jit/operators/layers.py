"""Larger operators whose schemas differ from flambeau's rows: convolution, recurrence, resizing."""

from __future__ import annotations

from typing import Any

from flambeau._ops.images.interpolate import BY_FACTORS, NEAREST, UPSAMPLE
from flambeau._ops.table.namespace import get, ops
from flambeau.jit.operators.forms import element_type
from flambeau.jit.operators.registry import functions, implements


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


COMPUTE_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
                 "donot_use_mm_for_euclid_dist")  # fmt: skip


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


functions({
    "_softmax": lambda input, dim, half_to_float: ops.softmax(input, dim),
    "_log_softmax": lambda input, dim, half_to_float: ops.log_softmax(input, dim),
    "log_sigmoid": lambda input: functional().logsigmoid(input),
    "einsum": lambda equation, operands, path: get("einsum")(equation, *operands),
    # Windows say no more than the size does.
    "max_unpool3d": (
        lambda input, indices, size, stride, padding: ops.max_unpool3d(input, indices, size)
    ),
    "relu6_": lambda input: input.clamp_(0, 6),
    "gelu_": (
        lambda input, approximate: input.copy_(functional().gelu(input, approximate=approximate))
    ),
    "cdist": lambda x1, x2, p, compute_mode: ops.cdist(x1, x2, p, COMPUTE_MODES[compute_mode or 0]),
    "_unique": lambda input, sort, inverse: unique2(input, sort, inverse, False)[:2],
    "rsub.Scalar": (
        lambda input, other, alpha: other - input * alpha if alpha != 1 else other - input
    ),
    "_stack": lambda tensors, dim: ops.stack(tensors, dim),  # noqa: PLW0108  (loaded when called)
    "chain_matmul": lambda matrices: get("chain_matmul")(*matrices),
    "tensordot": (
        lambda input, other, dims, other_dims: get("tensordot")(input, other, (dims, other_dims))
    ),
    "special_softmax": (
        lambda input, dim, dtype: functional().softmax(input, dim, dtype=element_type(dtype))
    ),
})  # fmt: skip


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


# ---- packed sequences


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


functions({
    "frobenius_norm.dim": (
        lambda input, dim, keepdim: ops.linalg.vector_norm(input, 2, dim, keepdim)
    ),
    "special_logsumexp": (
        lambda input, dim, keepdim: ops.logsumexp(input, dim, keepdim)  # noqa: PLW0108
    ),
})  # fmt: skip


@implements("arange.start_step")
def arange(start: Any, end: Any, step: Any, dtype: int | None, layout: Any, place: Any,
           pin_memory: Any) -> Any:  # fmt: skip
    """Numbers from start to end."""
    return get("arange")(start, end, step, dtype=element_type(dtype), device=place)
