"""Padding: `constant_pad_nd`, the reflection and replication pads, and `F.pad` over them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau._core import layout
from flambeau._core.dtype import from_numpy_dtype
from flambeau._core.layout import channels_last_strides, contiguous_strides, is_channels_last
from flambeau._core.settled import settled
from flambeau._ops.copying.copies import copy_in_format
from flambeau._ops.elementwise.bounds import beside
from flambeau._ops.images import resample
from flambeau._ops.launching.memory_formats import in_format, is_suggested_last
from flambeau._ops.table.binder import plain_type_name
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, kernel
from flambeau._ops.table.scalars import checked_number
from flambeau._runtime import cpu
from flambeau._runtime.cpu import element_strides, empty_strided
from flambeau._tensor.symbolic_numbers import as_int
from flambeau._tensor.tensor import wrap


def _pairs(pad: Sequence[int], ndim: int) -> list[tuple[int, int]]:
    """(before, after) for each dim from the first; `pad` starts with the last dim."""
    given = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    return [(0, 0)] * (ndim - len(given)) + given[::-1]


REAL = (int, float)


@kernel(
    "constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor",
    method=False,
    backward={"self": lambda grad, pad: ops.constant_pad_nd(grad, [-n for n in pad], 0)},
)
def constant_pad_nd(data: np.ndarray, pad: Sequence[int], value: Any) -> np.ndarray:
    """`value` around the last dims: `pad` is (left, right, top, ...); negative sizes crop.

    >>> import flambeau as torch
    >>> torch.constant_pad_nd(torch.ones(2, 2), (1, 0, 0, 1), 5)
    tensor([[5., 1., 1.],
            [5., 1., 1.],
            [5., 5., 5.]])
    """
    shape, source, target = _placed(data.shape, tuple(pad))
    if max(pad, default=0) <= 0:  # only a part of it
        return copy_in_format(data[source], data.dtype, None)
    result = _memory_for(data, shape)
    plain = value.__class__ in REAL and value == 0
    result.fill(value if plain else checked_number(value, data.dtype))
    cpu.put(result[target], data[source])
    return result


def _memory_for(data: np.ndarray, shape: Any) -> np.ndarray:
    """New memory, channels-last if `data` is, or may count as that by its dims of size 1."""
    if data.ndim in (4, 5) and is_channels_last(data.shape, element_strides(data)):
        return empty_strided(shape, channels_last_strides(shape), data.dtype)
    return np.empty(shape, data.dtype)


@settled
def _placed(sizes: tuple[int, ...], pad: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """The padded shape, the part of the input that is kept, and where it stands."""
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    ndim = len(sizes)
    if len(pad) > 2 * ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad "
            f"length is {len(pad)}while the input has {ndim}dimensions."
        )
    pairs = _pairs(pad, ndim)
    shape = tuple([size + sum(pair) for size, pair in zip(sizes, pairs, strict=True)])
    for size, (before, after), new in zip(sizes, pairs, shape, strict=True):
        if new < 0 or size + min(before, 0) + min(after, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
    source = [slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(sizes, pairs, strict=True)]
    target = [slice(max(b, 0), n - max(a, 0)) for n, (b, a) in zip(shape, pairs, strict=True)]
    return shape, tuple(source), tuple(target)


def _as_float(value: Any) -> Any:
    """The number that `pad` is given, which is a float: a negative one does not fill bytes."""
    if value is None:
        return 0
    exact = isinstance(value, int) and abs(value) < 1 << 53
    return float(value) if exact else value


# ---- reflection and replication


def _reflected(size: int, before: int, after: int) -> np.ndarray:
    """Which position each padded one copies: mirrored at the ends, which are not repeated."""
    places = np.abs(np.arange(-before, size + after))
    return np.where(places >= size, 2 * (size - 1) - places, places)


def _replicated(size: int, before: int, after: int) -> np.ndarray:
    """Which position each padded one copies: the nearest."""
    return np.clip(np.arange(-before, size + after), 0, size - 1)


Places = Callable[[int, int, int], np.ndarray]
LETTERS = "DHW"


def _check_batch(data: np.ndarray, spatial: int) -> None:
    """Only the batch may be empty."""
    batched = data.ndim == spatial + 2
    if data.ndim in (spatial + 1, spatial + 2) and 0 not in data.shape[1 if batched else 0 :]:
        return
    raise RuntimeError(
        f"Expected {spatial + 1}D or {spatial + 2}D (batch mode) tensor with possibly 0 batch size "
        f"and other non-zero dimensions for input, but got: {list(data.shape)}"
    )


def _check_reflection(data: np.ndarray, pairs: list[tuple[int, int]], spatial: int) -> None:
    for back, (before, after) in enumerate(reversed(pairs[-spatial:]), 1):
        size = data.shape[-back]
        if before >= size or after >= size:
            raise RuntimeError(
                f"Argument #{2 * back + 2}: Padding size should be less than the corresponding "
                f"input dimension, but got: padding ({before}, {after}) at dimension "
                f"{data.ndim - back} of input {list(data.shape)}"
            )


def _check_result(data: np.ndarray, shape: list[int], spatial: int) -> None:
    if max(shape[-spatial:]) >= 1:  # torch lets pass what is empty along some dims
        return
    letters = LETTERS[-spatial:]
    have = " ".join(f"{a}: {n}" for a, n in zip(letters, data.shape[-spatial:], strict=True))
    got = " ".join(f"{a}: {n}" for a, n in zip(letters, shape[-spatial:], strict=True))
    raise RuntimeError(f"input ({have}) is too small. Calculated output {got}")


def _pad_by_places(data: np.ndarray, padding: Sequence[int], spatial: int, places: Places,
                   name: str) -> np.ndarray:  # fmt: skip
    _check_batch(data, spatial)
    if data.dtype.kind == "b":
        kind = from_numpy_dtype(data.dtype).scalar_name
        raise NotImplementedError(f"\"{name}\" not implemented for '{kind}'")
    pairs = _pairs(padding, data.ndim)
    if places is _reflected:
        _check_reflection(data, pairs, spatial)
    shape = [size + sum(pair) for size, pair in zip(data.shape, pairs, strict=True)]
    _check_result(data, shape, spatial)
    if min(shape) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {shape}")
    last = is_suggested_last(data)
    found = resample.padded(data, pairs, places, data.shape)
    if found is not None:
        return in_format(found, last)
    strides = channels_last_strides(shape) if last else contiguous_strides(shape)
    result = empty_strided(shape, strides, data.dtype)
    padded = data
    for dim in range(data.ndim - spatial, data.ndim):
        if pairs[dim] != (0, 0):
            padded = np.take(padded, places(data.shape[dim], *pairs[dim]), dim)
    result[...] = padded
    return result


def _unpad_by_places(grad: np.ndarray, shape: Sequence[int], padding: Sequence[int], spatial: int,
                     places: Places) -> np.ndarray:  # fmt: skip
    """Add each padded position to the one that it copies."""
    pairs = _pairs(padding, grad.ndim)
    found = resample.padded(grad, pairs, places, tuple(shape), backward=True)
    if found is not None:
        return found
    total = grad if grad.dtype.itemsize > 2 else grad.astype(np.float32)
    for dim in range(grad.ndim - spatial, grad.ndim):
        if pairs[dim] == (0, 0):
            continue
        summed = np.zeros((*total.shape[:dim], shape[dim], *total.shape[dim + 1 :]), total.dtype)
        np.add.at(summed.swapaxes(0, dim), places(shape[dim], *pairs[dim]), total.swapaxes(0, dim))
        total = summed
    return np.array(total, grad.dtype)


def _rows(kind: str, title: str, spatial: int, places: Places) -> None:
    """The rows `reflection_pad2d` and `reflection_pad2d_backward`, and their like."""
    name = f"{kind}_pad{spatial}d"
    unsettled = f"{name}_backward_out_cuda" if kind == "reflection" and spatial != 2 else ""
    again, undo = name, f"{name}_backward"

    def backward(grad: Any, self: Any, padding: Any, self_shape: Any) -> Any:
        return beside(getattr(ops, undo)(grad, self_shape, padding), self)

    def double(grad: Any, padding: Any) -> Any:
        return getattr(ops, again)(grad, padding)

    def forward_body(data: np.ndarray, padding: Sequence[int]) -> np.ndarray:
        return _pad_by_places(data, padding, spatial, places, name)

    def backward_body(data: np.ndarray, shape: Any, padding: Any) -> np.ndarray:
        return _unpad_by_places(data, shape, padding, spatial, places)

    forward_body.__doc__ = f"Padding of the last {spatial} dims by {kind}."
    backward_body.__doc__ = f"The gradient of `{name}`."
    kernel(
        f"{name}(Tensor self, int[] padding) -> Tensor",
        method=False,
        node=f"{title}Pad{spatial}DBackward0",
        saved_names={"self_shape": None},
        autocast=None if name == "reflection_pad3d" else "cpu=float32",
        backward={"self": backward},
    )(forward_body)
    kernel(f"{undo}(Tensor grad_output, int[] shape, int[] padding) -> Tensor", method=False,
           node=f"{title}Pad{spatial}DBackwardBackward0", nondeterministic=unsettled,
           backward={"grad_output": double})(backward_body)  # fmt: skip


for _spatial in (1, 2, 3):
    _rows("reflection", "Reflection", _spatial, _reflected)
    _rows("replication", "Replication", _spatial, _replicated)


# ---- F.pad


ROWS = layout.contiguous_format


@composite("_pad_circular(Tensor self, int[] pad) -> Tensor", method=False, autocast="outside")
def pad_circular(input: Any, pad: Sequence[int]) -> Any:
    """Padding by the values from the other end; negative sizes crop."""
    pairs = _pairs(pad, input._data.ndim)
    result = input
    for dim, (before, after) in enumerate(pairs):
        size = input._data.shape[dim]
        if before > size or after > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if before + after + size < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
        if (before, after) == (0, 0):
            continue
        core = ops.slice(result, dim, max(-before, 0), size - max(-after, 0))
        length = core._data.shape[dim]
        if max(before, after) > length:  # one end is cropped, and the other needs more
            places = np.arange(-max(before, 0), length + max(after, 0)) % length
            result = ops.index_select(core, dim, wrap(places))
            continue
        parts = [core]
        if before > 0:
            parts.insert(0, ops.slice(core, dim, length - before, length))
        if after > 0:
            parts.append(ops.slice(core, dim, 0, after))
        result = ops.cat(parts, dim)
    if result is input or result.stride() != contiguous_strides(result._data.shape):
        return ops.clone(result, memory_format=ROWS)
    return result


MODES = {"reflect": "reflection", "replicate": "replication"}


@composite(
    "pad(Tensor self, int[] pad, str mode='constant', float? value=None) -> Tensor",
    method=False,
    function=False,
)
def padded(input: Any, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Any:
    """Padding of the last dims, by pairs of sizes, the last dim first."""
    if not isinstance(pad, (tuple, list)):
        raise TypeError("pad(): argument 'pad' (position 2) must be tuple of ints, not "
                        f"{plain_type_name(pad)}")  # fmt: skip
    for position, size in enumerate(pad):
        if size.__class__ is not int and not hasattr(size, "__index__"):
            raise TypeError(
                "pad(): argument 'pad' (position 2) must be tuple of ints, but found "
                f"element of type {type(size).__name__} at pos {position}"
            )
    pad = [size if size.__class__ is int else as_int(size) for size in pad]
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    ndim = input._data.ndim
    if len(pad) > 2 * ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(pad)} and input of dimension {ndim}"
        )
    if mode == "constant":
        return ops.constant_pad_nd(input, pad, _as_float(value))
    if value not in (None, 0):
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    spatial = len(pad) // 2
    fits = spatial in (1, 2, 3) and ndim in (spatial + 1, spatial + 2)
    if fits and mode == "circular":
        return ops._pad_circular(input, pad)
    if fits and mode in MODES:
        return getattr(ops, f"{MODES[mode]}_pad{spatial}d")(input, pad)
    if fits or mode not in (*MODES, "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    raise NotImplementedError(f"Padding size {len(pad)} is not supported for {ndim}D input tensor.")


@composite(
    "pad(Tensor self, int[] pad, str mode='constant', float? value=None) -> Tensor",
    namespace="nn.functional",
    method=False,
)
def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Any:
    """Padding of the last dims: `pad` is (left, right, top, bottom, ...).

    `mode` is "constant" (with `value`), "reflect", "replicate" or "circular".

    >>> import flambeau as torch
    >>> torch.nn.functional.pad(torch.ones(2), (1, 2), value=7.0)
    tensor([7., 1., 1., 7., 7.])
    """
    return padded.body(input, pad, mode, value)
