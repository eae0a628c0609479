"""Elements in another order or number: `flip`, `roll`, `repeat`, `tril`, `diag`, `one_hot`, ..."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.doc_text import with_example
from flambeau._core.layout import channels_last_strides, contiguous_format, is_channels_last
from flambeau._core.settled import settled
from flambeau._ops.images import resample
from flambeau._ops.indexing.positions import FULL, highest
from flambeau._ops.launching.memory_formats import is_suggested_last
from flambeau._ops.launching.precision import require_known
from flambeau._ops.table.binder import require_tensor
from flambeau._ops.table.dims import refuse_truth, wrap_dim, wrap_dims
from flambeau._ops.table.dispatch import named_sizes, size_list
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import BY_NAME, UNKNOWN, alias, composite, internal, kernel
from flambeau._ops.table.outputs import EXACT
from flambeau._runtime import cpu
from flambeau._runtime.cpu import element_strides, empty_strided, preserved_strides
from flambeau._tensor import meta
from flambeau._tensor.meta import Meta
from flambeau._tensor.tensor import Tensor, wrap

# ---- flip, roll, rot90


@kernel(
    "flip(Tensor self, int[] dims) -> Tensor",
    backward={"self": lambda grad, dims: ops.flip(grad, dims)},
)
def flip(data: np.ndarray, dims: Sequence[int]) -> np.ndarray:
    """The elements in reverse order along dims.

    >>> import flambeau as torch
    >>> torch.flip(torch.tensor([1, 2, 3]), [0])
    tensor([3, 2, 1])
    """
    turned = wrap_dims(dims, data.ndim) if len(dims) else ()
    require_known("flip_cpu", data.dtype)
    if data.ndim == 0:
        return np.array(data)
    key = tuple([BACKWARDS if d in turned else FULL for d in range(data.ndim)])
    return _filled(preserved_strides(data), data[key])


BACKWARDS = slice(None, None, -1)


def _filled(strides: Any, values: np.ndarray) -> np.ndarray:
    """New memory with the given strides in elements (None: row-major) and values."""
    if strides is None:
        return np.array(values, order="C")
    result = empty_strided(values.shape, strides, values.dtype)
    result[...] = values
    return result


def _flip_one(name: str, dim: int, printed: str) -> None:
    def function(input: Tensor) -> Any:
        if input._data.ndim <= dim:
            raise RuntimeError(f"Input must be >= {dim + 1}-d.")
        return ops.flip(input, (dim,))

    function.__name__ = name
    function.__doc__ = with_example(
        f"`flip` along dim {dim}: the shape stays.",
        f"torch.{name}(torch.tensor([[1, 2], [3, 4]]))",
        printed,
    )
    composite(f"{name}(Tensor self) -> Tensor")(function)


_flip_one("flipud", 0, "tensor([[3, 4],\n        [1, 2]])")
_flip_one("fliplr", 1, "tensor([[2, 1],\n        [4, 3]])")


@kernel(
    "roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor",
    batch="examples",
    backward={"self": lambda grad, shifts, dims: ops.roll(grad, _negated(shifts), dims)},
)
def roll(data: np.ndarray, shifts: Sequence[int], dims: Sequence[int]) -> np.ndarray:
    """The elements moved along dims; those that fall off the end come back at the start.

    >>> import flambeau as torch
    >>> torch.roll(torch.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    refuse_truth(shifts)
    refuse_truth(dims)
    # None for `dims` is taken as what it is by default, as in torch
    shifts, dims = [index(shift) for shift in shifts], [index(dim) for dim in dims or ()]
    result = np.empty(data.shape, data.dtype)
    if not dims and len(shifts) == 1:
        target, data = result.reshape(-1), data.reshape(-1)
        dims = (0,)
    else:
        target = result
    for source, place in _moved_blocks(data.shape, shifts, dims):
        cpu.put(target[place], data[source])
    if result.ndim in (4, 5) and target is result and _rolls_pixels(data, shifts, dims):
        return _filled(channels_last_strides(data.shape), result)
    return result


def _rolls_pixels(data: np.ndarray, shifts: Sequence[int], dims: Sequence[int]) -> bool:
    """Whether the two parts of the last dim that moves are both channels-last: of size 1, a dim may
    lie as if they were."""
    strides = element_strides(data)
    if len(dims) > 1:
        return not data.flags.c_contiguous and is_channels_last(data.shape, strides)
    dim, size = wrap_dim(dims[0], data.ndim), data.shape[wrap_dim(dims[0], data.ndim)]
    if not data.size:
        return False
    start = -shifts[0] % size
    parts = [(*data.shape[:dim], part, *data.shape[dim + 1 :]) for part in (size - start, start)]
    return all(is_channels_last(shape, strides) for shape in parts)


@settled
def _moved_blocks(shape: tuple[int, ...], shifts: Sequence[int],
                  dims: Sequence[int]) -> list[tuple[Any, Any]]:  # fmt: skip
    """Where each block lies before and after: a shift cuts a dim into two."""
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, "
                           f"dims:{len(dims)}")  # fmt: skip
    if not shape:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    cuts = dict.fromkeys([wrap_dim(dim, len(shape)) for dim in dims], 0)
    for dim, shift in zip(dims, shifts, strict=True):
        cuts[dim % len(shape)] -= shift
    blocks: list[tuple[Any, Any]] = [((), ())]
    for dim in range(max(cuts) + 1):
        size = shape[dim]
        cut = cuts.get(dim, 0) % (size or 1)
        halves = [(FULL, FULL)]
        if cut:
            halves = [(slice(cut, None), slice(size - cut)), (slice(cut), slice(size - cut, None))]
        blocks = [((*x, half), (*y, place)) for x, y in blocks for half, place in halves]
    return blocks


def _negated(shifts: Any) -> Any:
    if isinstance(shifts, (list, tuple)):
        return [-int(shift) for shift in shifts]
    return -int(shifts)


@kernel(
    "rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
    backward={"self": lambda grad, k, dims: ops.rot90(grad, -k, dims)},
)
def rot90(data: np.ndarray, k: int, dims: Sequence[int]) -> np.ndarray:
    """A plane turned by `k` times 90 degrees, from the first of `dims` towards the second.

    >>> import flambeau as torch
    >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if data.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {data.ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == data.ndim:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and "
                           f"dim1 = {dims[1]}")  # fmt: skip
    first, second = wrap_dim(dims[0], data.ndim), wrap_dim(dims[1], data.ndim)
    turns = k % 4
    if turns == 0:
        return np.array(data, order="C")
    if turns == 2:
        return flip.body(data, (first, second))  # type: ignore[no-any-return]
    flipped = flip.body(data, (second if turns == 1 else first,))
    return flipped.swapaxes(first, second)  # type: ignore[no-any-return]


# ---- repeat


@kernel(
    "repeat(Tensor self, int[] repeats) -> Tensor",
    function=False,
    backward={"self": lambda grad, self_shape, repeats: _repeat_grad(grad, self_shape, repeats)},
)
def repeat(data: np.ndarray, repeats: Sequence[int]) -> np.ndarray:
    """The tensor side by side with itself, `repeats` times along each dim.

    >>> import flambeau as torch
    >>> torch.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    if len(repeats) < data.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of "
                           "dimensions of tensor")  # fmt: skip
    missing = len(repeats) - data.ndim
    shape = (1,) * missing + data.shape
    sizes = [int(count) * size for count, size in zip(repeats, shape, strict=True)]
    if min(sizes, default=0) < 0:
        size = next(size for size in sizes if size < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {size}: {sizes}")
    result = np.empty(sizes, data.dtype)
    if not result.size:  # repeats of nothing may be below 0
        return result
    split = [n for count, size in zip(repeats, shape, strict=True) for n in (int(count), size)]
    result.reshape(split)[...] = data.reshape([n for size in shape for n in (1, size)])
    return result


def _repeat_grad(grad: Any, shape: Any, repeats: Any) -> Any:
    """The sum over all copies; with a single one, the gradient itself."""
    if len(repeats) == len(shape) and all(count == 1 for count in repeats):
        return grad
    if min(repeats, default=1) <= 0:
        return ops.new_zeros(grad, shape)
    padded = (1,) * (len(repeats) - len(shape)) + tuple(shape)
    split = [n for count, size in zip(repeats, padded, strict=True) for n in (count, size)]
    summed = ops.sum(ops.reshape(grad, split), list(range(0, len(split), 2)))
    return ops.reshape(summed, shape)


@composite("tile(Tensor self, int[] dims) -> Tensor")
def tile(input: Tensor, *dims: Any, **named: Any) -> Any:
    """`repeat`, with ones in front where `dims` is short.

    >>> import flambeau as torch
    >>> torch.tile(torch.tensor([1, 2]), (2, 2))
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    given = (named_sizes(BY_NAME["tile"][0], dims, named),) if named else dims
    counts = size_list(given)
    if counts and isinstance(counts[0], (bool, np.bool_)):
        raise TypeError("tile(): argument 'dims' (position 1) must be tuple of ints, but found "
                        "element of type bool at pos 0")  # fmt: skip
    missing = input._data.ndim - len(counts)
    return ops.repeat(input, [1] * max(missing, 0) + [int(count) for count in counts])


@composite(
    "repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, "
    "int? output_size=None) -> Tensor"
)
def repeat_interleave(input: Any = None, repeats: Any = None, dim: int | None = None, *,
                      output_size: int | None = None) -> Any:  # fmt: skip
    """Every element (or slice along `dim`) several times in a row.

    With `repeats` alone: position 0 that many times, then position 1, ...

    >>> import flambeau as torch
    >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    if input is None or repeats is None:
        counts = repeats if input is None else input
        require_tensor("repeat_interleave", "repeats", 1, counts)
        return _places(counts, output_size)
    if input._stored is not None and isinstance(repeats, Tensor):  # the result has the bits
        with_bit = ops.conj if input._conjugated else ops._neg_view
        found = repeat_interleave.body(with_bit(input), repeats, dim, output_size=output_size)
        return with_bit(found)
    if dim is None:
        input, dim = ops.flatten(input), 0
    dim = wrap_dim(dim, input._data.ndim)
    if input._data.ndim == 0:
        input = ops.reshape(input, (1,))
    if isinstance(repeats, Tensor):
        if repeats._data.size == 1 and repeats._data.ndim <= 1:
            repeats = ops.expand(repeats, (input._data.shape[dim],))
        _check_repeats(repeats._data, input._data, dim)
        return ops.index_select(input, dim, _places(repeats, output_size))
    return _interleave(input, repeats, dim, output_size)


def _interleave(input: Any, repeats: int, dim: int, output_size: int | None) -> Any:
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    shape = input._data.shape
    if output_size not in (None, shape[dim] * repeats):
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected "
                           f"{shape[dim] * repeats} but got {output_size}")  # fmt: skip
    wide = ops.expand(ops.unsqueeze(input, dim + 1),
                      (*shape[: dim + 1], repeats, *shape[dim + 1 :]))  # fmt: skip
    copied = ops.clone(wide, memory_format=contiguous_format)
    return ops.view(copied, (*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :]))


def _check_repeats(repeats: np.ndarray, data: np.ndarray, dim: int) -> None:
    if repeats.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if repeats.size != data.shape[dim]:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{repeats.size} and input.size({dim}) = {data.shape[dim]}"
        )


def _places(repeats: Tensor, output_size: int | None) -> Tensor:
    if repeats._data.__class__ is not Meta:
        return ops._repeat_interleave(repeats, output_size)  # type: ignore[no-any-return]
    if output_size is None:
        raise RuntimeError("cannot repeat_interleave a meta tensor without output_size")
    return wrap(meta.empty((output_size,), (1,), repeats._data.dtype))


@internal(
    "_repeat_interleave(Tensor repeats, int? output_size=None) -> Tensor",
    shape=UNKNOWN,
)
def spread(repeats: np.ndarray, output_size: int | None) -> np.ndarray:
    """Position i, `repeats[i]` times."""
    if repeats.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.dtype.kind not in "iu" or repeats.dtype.itemsize < 4:
        name = dt.from_numpy_dtype(repeats.dtype).scalar_name
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{name}'")
    if repeats.size and repeats.min() < 0:
        raise RuntimeError("repeats can not be negative")
    places = np.repeat(np.arange(repeats.size, dtype=np.int64), repeats)
    if output_size not in (None, places.size):
        raise RuntimeError("allocated size does not match required size")
    return places.astype(np.int64 if repeats.dtype.itemsize == 8 else np.int32)


# ---- triangles and diagonals


def _triangle(name: str, keep: Callable[..., np.ndarray], doc: str) -> None:
    def body(data: np.ndarray, diagonal: int) -> np.ndarray:
        if data.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        *_, rows, columns = data.shape
        if rows * columns <= SMALL and data.flags.c_contiguous:
            zero = np.zeros((), data.dtype)
            return np.where(small_mask(rows, columns, diagonal), data, zero)
        result = np.zeros(data.shape, data.dtype)
        np.copyto(result, data, where=mask(rows, columns, diagonal))
        return result

    def mask(rows: int, columns: int, diagonal: int) -> np.ndarray:
        return keep(np.arange(columns) - np.arange(rows)[:, None], diagonal)

    small_mask = lru_cache(64)(mask)

    def backward(grad: Any, diagonal: int) -> Any:
        return getattr(ops, name)(grad, diagonal)

    body.__name__, body.__doc__ = name, doc
    kernel(f"{name}(Tensor self, int diagonal=0) -> Tensor", inplace=True, out=True,
           out_type=EXACT, regular=True, backward={"self": backward})(body)  # fmt: skip


SMALL = 4096
"""Elements of matrices whose masks are remembered, and whose triangles `np.where` takes faster."""

_triangle("tril", np.less_equal, with_example(
    "The lower triangle of matrices (*, n, m); 0 above `diagonal`.", "torch.tril(torch.ones(2, 3))",
    "tensor([[1., 0., 0.],\n        [1., 1., 0.]])"))  # fmt: skip
_triangle("triu", np.greater_equal, with_example(
    "The upper triangle of matrices (*, n, m); 0 below `diagonal`.", "torch.triu(torch.ones(2, 3))",
    "tensor([[1., 1., 1.],\n        [0., 1., 1.]])"))  # fmt: skip


@kernel(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    batch="new dim",
    backward={"self": lambda grad, offset, dim1, dim2: ops.diagonal(grad, offset, dim1, dim2)},
)
def diag_embed(data: np.ndarray, offset: int, dim1: int, dim2: int) -> np.ndarray:
    """Matrices, in the dims `dim1` and `dim2`, with the last dim on a diagonal and 0 elsewhere.

    >>> import flambeau as torch
    >>> torch.diag_embed(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    ndim = data.ndim + 1
    first, second = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = data.shape[-1] + abs(offset)
    rest = iter(data.shape[:-1])
    shape = [size if dim in (first, second) else next(rest) for dim in range(ndim)]
    result = np.zeros(shape, data.dtype)
    matrices = np.moveaxis(result, (first, second), (-2, -1))
    places = np.arange(data.shape[-1])
    matrices[..., places + max(-offset, 0), places + max(offset, 0)] = data
    return result


@kernel(
    "_diagonal_copied(Tensor self, int diagonal) -> Tensor",
    method=False,
    node="DiagonalBackward0_copy",
    backward={
        "self": lambda grad, self_shape, diagonal: ops.diagonal_backward(
            grad, self_shape, diagonal, 0, 1
        )
    },
)
def diagonal_copied(data: np.ndarray, diagonal: int) -> np.ndarray:
    """A diagonal of a matrix in new memory."""
    return np.array(data.diagonal(diagonal))


@composite(
    "diag(Tensor self, int diagonal=0) -> Tensor", out_writer="aten::diag_embed", out_type=EXACT
)
def diag(input: Tensor, diagonal: int = 0, *, out: Any = None) -> Any:
    """A matrix with this vector on a diagonal, or a matrix's diagonal as a vector.

    >>> import flambeau as torch
    >>> torch.diag(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    ndim = input._data.ndim
    if ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    result = ops.diag_embed(input, diagonal) if ndim == 1 else ops._diagonal_copied(input, diagonal)
    if out is None:
        return result
    from flambeau._ops.table.outputs import write_out

    return write_out(diag, out, result)


@composite("diagflat(Tensor self, int offset=0) -> Tensor")
def diagflat(input: Tensor, offset: int = 0) -> Any:
    """A matrix with all elements, in order, on a diagonal.

    >>> import flambeau as torch
    >>> torch.diagflat(torch.tensor([[1], [2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    return ops.diag_embed(ops.reshape(input, (-1,)), offset)


# ---- shuffles


def _shuffle_check(name: str, factor_name: str, factor: int, data: np.ndarray) -> None:
    if data.ndim < 3:
        raise RuntimeError(f"{name} expects input to have at least 3 dimensions, but got input "
                           f"with {data.ndim} dimension(s)")  # fmt: skip
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {factor_name}, but got {factor}")


@kernel(
    "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    builtin=True,
    method=False,
    backward={"self": lambda grad, upscale_factor: ops.pixel_unshuffle(grad, upscale_factor)},
)
def pixel_shuffle(data: np.ndarray, upscale_factor: int) -> np.ndarray:
    """Channels become pixels: `(*, C r r, H, W)` to `(*, C, H r, W r)`.

    >>> import flambeau as torch
    >>> torch.pixel_shuffle(torch.arange(4).reshape(1, 4, 1, 1), 2)
    tensor([[[[0, 1],
              [2, 3]]]])
    """
    r = upscale_factor
    _shuffle_check("pixel_shuffle", "upscale_factor", r, data)
    *lead, channels, height, width = data.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}"
        )
    split = data.reshape(*lead, channels // (r * r), r, r, height, width)
    n = len(lead)
    order = (*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    shape = (*lead, channels // (r * r), height * r, width * r)
    return _shuffled(data, split.transpose(order).reshape(shape))


@kernel(
    "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
    builtin=True,
    method=False,
    backward={"self": lambda grad, downscale_factor: ops.pixel_shuffle(grad, downscale_factor)},
)
def pixel_unshuffle(data: np.ndarray, downscale_factor: int) -> np.ndarray:
    """Pixels become channels: `(*, C, H r, W r)` to `(*, C r r, H, W)`.

    >>> import flambeau as torch
    >>> torch.pixel_unshuffle(torch.zeros(1, 1, 4, 4), 2).shape
    torch.Size([1, 4, 2, 2])
    """
    r = downscale_factor
    _shuffle_check("pixel_unshuffle", "downscale_factor", r, data)
    *lead, channels, height, width = data.shape
    for word, place, size in (("height", -2, height), ("width", -1, width)):
        if size % r:
            raise RuntimeError(f"pixel_unshuffle expects {word} to be divisible by "
                               f"downscale_factor, but input.size({place})={size} is not "
                               f"divisible by {r}")  # fmt: skip
    split = data.reshape(*lead, channels, height // r, r, width // r, r)
    n = len(lead)
    order = (*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    shape = (*lead, channels * r * r, height // r, width // r)
    return _shuffled(data, split.transpose(order).reshape(shape))


@kernel(
    "channel_shuffle(Tensor self, int groups) -> Tensor",
    saved_names={"self_shape": None},
    builtin=True,
    method=False,
    backward={
        "self": lambda grad, self_shape, groups: ops.channel_shuffle(grad, self_shape[1] // groups)
    },
)
def channel_shuffle(data: np.ndarray, groups: int) -> np.ndarray:
    """The channels (dim 1) dealt out like cards: one from each group in turn.

    >>> import flambeau as torch
    >>> torch.channel_shuffle(torch.arange(4).reshape(1, 4, 1, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """
    if data.ndim <= 2:
        raise RuntimeError("channel_shuffle expects input with > 2 dims, but got input with sizes "
                           f"{list(data.shape)}")  # fmt: skip
    if groups <= 0:
        raise RuntimeError("Number of groups to divide channels in must be positive. Value of "
                           f"groups:{groups}")  # fmt: skip
    images, channels, *rest = data.shape
    if channels % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {channels} "
                           f"channels and {groups} groups.")  # fmt: skip
    found = None if is_suggested_last(data) else resample.channels_shuffled(data, groups)
    if found is not None:
        return found
    split = data.reshape(images, groups, channels // groups, *rest)
    return _shuffled(data, split.swapaxes(1, 2).reshape(data.shape))


alias("native_channel_shuffle", "channel_shuffle")
alias("nn.functional.native_channel_shuffle", "channel_shuffle")


def _shuffled(data: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The values in new memory, channels-last if the input was."""
    if data.ndim == 4 and is_channels_last(data.shape, element_strides(data)):
        return _filled(channels_last_strides(values.shape), values)
    return np.array(values, order="C") if values.base is not None else values


def _known_count(num_classes: int) -> Any:
    """Whether how many classes there are depends on no numbers."""
    return UNKNOWN if num_classes == -1 else NotImplemented


@kernel(
    "one_hot(Tensor self, int num_classes=-1) -> Tensor",
    builtin=True,
    namespace="nn.functional",
    method=False,
    shape=lambda data, num_classes: _known_count(num_classes),
)
def one_hot(data: np.ndarray, num_classes: int) -> np.ndarray:
    """A new last dim that is 1 at each index and 0 elsewhere; int64.

    >>> import flambeau as torch
    >>> torch.nn.functional.one_hot(torch.tensor([0, 2]), num_classes=3)
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if data.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not data.size:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return np.empty((*data.shape, num_classes), np.int64)
    largest = int(highest(data.view(np.uint64), None))  # negative values are the largest so
    if largest >= 1 << 63:
        raise RuntimeError("Class values must be non-negative.")
    classes = largest + 1 if num_classes == -1 else num_classes
    if largest >= classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    result = np.zeros((data.size, classes), np.int64)
    result[np.arange(data.size), data.reshape(-1)] = 1
    return result.reshape(*data.shape, classes)
