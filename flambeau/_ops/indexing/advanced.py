"""Indexing with tensors: `index`, `index_put` and the gradient of `index`, on ndarrays.

Indices come as one entry per dim: an integer array, a mask (bool or uint8) that covers as many
dims as it has, or None for a dim that stays. The dims of the result that the indices make stand
where the indexed dims stood if those are next to each other, else in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.settings import warn_user
from flambeau._ops.copying.copies import assign
from flambeau._ops.indexing import launch as scatter
from flambeau._ops.indexing.positions import FLOAT32, FULL, INTEGERS, fill_where
from flambeau._ops.table import outputs
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import UNKNOWN, kernel
from flambeau._ops.table.writers import writer
from flambeau._ops.views.geometry import view_strides
from flambeau._runtime import cpu

Arrays = Sequence[np.ndarray | None]
MASKS = frozenset((np.dtype(np.bool_), np.dtype(np.uint8)))


# ---- reading


def _known_counts(indices: Any) -> Any:
    """Whether how many elements are taken depends on no numbers: there is no mask."""
    masks = [index for index in indices if index is not None and index.dtype.kind in "b"]
    return UNKNOWN if masks else NotImplemented


@kernel(
    "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    shape=lambda data, indices: _known_counts(indices),
    batch="index",
    method=False,
    function=False,
    backward={
        "self": lambda grad, self_shape, indices: ops._index_backward(grad, self_shape, indices)
    },
)
def index(data: np.ndarray, indices: Arrays) -> np.ndarray:
    """The elements at the given positions, in new memory; see the module for the dims' order."""
    found = _index_quickly(data, indices)
    if found is not None:
        return found
    key = checked_key(data.shape, indices)
    try:
        result = data[key]
    except IndexError:
        result = _refused(data, key)
    return _placed(data, key, result)


def _index_quickly(data: np.ndarray, indices: Arrays) -> np.ndarray | None:
    """The short way for one array of positions, or one mask over all dims.

    `take` and `compress` need half the time of `data[array]` (benchmarks/indexing.py).
    """
    array = indices[-1]
    dim = len(indices) - 1
    if array is None or not data.flags.c_contiguous or data.size == 0 or dim >= data.ndim:
        return None
    for before in indices[:-1]:
        if before is not None:
            return None
    if array.dtype in INTEGERS:
        if not _is_plain_list(array) or (data.ndim > 2 and 1 in data.shape):
            return None
        flat = array if array.ndim == 1 else array.reshape(-1)
        found = scatter.read_rows(data, dim, flat, True)
        if found is not None:
            shape = data.shape
            return found.reshape(*shape[:dim], *array.shape, *shape[dim + 1 :])  # type: ignore[no-any-return]
        try:
            return data.take(array, dim)
        except IndexError:
            raise _bounds_error([(array, data.shape[dim])]) from None
    if array.dtype == np.bool_ and array.shape == data.shape and array.flags.c_contiguous:
        return data.reshape(-1).compress(array.reshape(-1))
    return None


def _bytes_as_mask(array: np.ndarray, quiet: bool) -> np.ndarray:
    if not quiet:
        warn_user(
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
            "instead."
        )
    return array != 0


def checked_key(shape: tuple[int, ...], indices: Arrays, quiet: bool = False) -> tuple[Any, ...]:
    """The NumPy index for a list of indices; torch's errors for wrong types, masks and counts.

    `quiet`: masks of bytes are taken without a warning.
    """
    key: list[Any] = []
    dim = 0
    if len(indices) > len(shape):
        raise IndexError(
            f"too many indices for tensor of dimension {len(shape)} (got {len(indices)})"
        )
    for array in indices:
        if array is None:
            key.append(FULL)
            dim += 1
        elif array.dtype in MASKS:
            _check_mask(array.shape, dim, shape)
            key.append(array if array.dtype == np.bool_ else _bytes_as_mask(array, quiet))
            dim += array.ndim
        elif array.dtype in INTEGERS:
            key.append(array)
            dim += 1
        else:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    if dim > len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)} (got {dim})")
    return tuple(key)


def _check_mask(mask: tuple[int, ...], dim: int, shape: tuple[int, ...]) -> None:
    if dim + len(mask) > len(shape):
        raise IndexError(
            f"too many indices for tensor of dimension {len(shape)} (got {dim + len(mask)})"
        )
    for position, size in enumerate(mask):
        if size != shape[dim + position]:
            raise IndexError(
                f"The shape of the mask {list(mask)} at index {position} does not match the shape "
                f"of the indexed tensor {list(shape)} at index {dim + position}"
            )


def integer_indices(shape: tuple[int, ...], key: tuple[Any, ...]) -> list[Any]:
    """One entry per dim of the tensor: masks become the positions of their True elements."""
    entries: list[Any] = []
    for item in key:
        if item is FULL:
            entries.append(None)
        elif item.dtype == np.bool_:
            entries.extend(item.nonzero() if item.ndim else ())
        else:
            entries.append(item)
    return entries + [None] * (len(shape) - len(entries))


def index_shape(entries: list[Any]) -> tuple[int, ...]:
    """The broadcast shape of the index arrays."""
    arrays = [entry for entry in entries if entry is not None]
    try:
        return np.broadcast_shapes(*[array.shape for array in arrays])
    except ValueError:
        shapes = ", ".join(str(list(array.shape)) for array in arrays)
        raise IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with shapes " + shapes
        ) from None


def _split_dims(entries: list[Any]) -> tuple[list[int], int, list[int]]:
    """(dims before, number of indexed dims, dims after) in the order of the result."""
    used = [dim for dim, entry in enumerate(entries) if entry is not None]
    kept = [dim for dim, entry in enumerate(entries) if entry is None]
    if not used:
        return kept, 0, []
    if used[-1] - used[0] + 1 != len(used):
        return [], len(used), kept
    return kept[: used[0]], len(used), kept[used[0] :]


def result_shape(shape: tuple[int, ...], entries: list[Any]) -> tuple[int, ...]:
    """The shape of what is read or written."""
    before, _, after = _split_dims(entries)
    middle = index_shape(entries)
    return (*(shape[d] for d in before), *middle, *(shape[d] for d in after))


def _refused(data: np.ndarray, key: tuple[Any, ...]) -> np.ndarray:
    """NumPy refused a key: raise torch's error, or give the empty result that torch gives."""
    entries = integer_indices(data.shape, key)
    shape = result_shape(data.shape, entries)
    _check_bounds(data.shape, entries, shape)
    return np.empty(shape, data.dtype)


def _check_bounds(sizes: tuple[int, ...], entries: list[Any], shape: tuple[int, ...]) -> None:
    _check_empty_dims(sizes, entries)
    if 0 not in shape:
        raise _bounds_error([(e, sizes[dim]) for dim, e in enumerate(entries) if e is not None])


def _check_empty_dims(sizes: tuple[int, ...], entries: list[Any]) -> None:
    indexed = [sizes[dim] for dim, entry in enumerate(entries) if entry is not None]
    if 0 in indexed and 0 not in index_shape(entries):
        raise IndexError("index is out of bounds for dimension with size 0")


def _bounds_error(pairs: list[tuple[np.ndarray, int]]) -> IndexError:
    """Torch's error for the first position out of range; dims count among the indexed ones."""
    arrays = np.broadcast_arrays(*[array for array, _ in pairs])
    wrong = [(a < -n) | (a >= n) for a, (_, n) in zip(arrays, pairs, strict=True)]
    firsts = [int(w.argmax()) if w.any() else w.size for w in wrong]
    dim = firsts.index(min(firsts))
    value = arrays[dim].reshape(-1)[firsts[dim]]
    return IndexError(
        f"index {value} is out of bounds for dimension {dim} with size {pairs[dim][1]}"
    )


def _placed(data: np.ndarray, key: tuple[Any, ...], result: np.ndarray) -> np.ndarray:
    """The result in memory of its own, with the strides that torch gives it."""
    if result.size == 0:
        result = np.empty(result.shape, result.dtype)
    strides = None
    is_choice = any(item is not FULL and not item.ndim and item.dtype == np.bool_ for item in key)
    if result.ndim > 1 and not is_choice and not _gives_row_major(data, key):
        strides = _torch_strides(data, integer_indices(data.shape, key), result.shape)
    if strides is None:
        owned = result.flags.c_contiguous and result.base is None
        return result if owned else np.array(result, order="C")
    placed = cpu.empty_strided(result.shape, strides, result.dtype)
    placed[...] = result
    return placed


def _gives_row_major(data: np.ndarray, key: tuple[Any, ...]) -> bool:
    """Whether torch's result is row-major for sure, which is so for one plain list of positions."""
    used = [item for item in key if item is not FULL]
    if len(used) != 1 or (used[0].dtype != np.bool_ and not _is_plain_list(used[0])):
        return False
    return data.ndim <= 2 or (data.flags.c_contiguous and 1 not in data.shape)


def _is_plain_list(array: np.ndarray) -> bool:
    """Whether the order of an index's dims is that of its memory, and no other."""
    return array.ndim == 1 or (array.ndim > 1 and array.flags.c_contiguous and 1 not in array.shape)


def _torch_strides(data: np.ndarray, entries: list[Any], shape: tuple[int, ...]) -> Any:
    """Strides of an elementwise result over the source (0 in indexed dims) and the indices."""
    before, _, after = _split_dims(entries)
    have = cpu.element_strides(data)
    middle = index_shape(entries)
    around = ([have[d] for d in before], [have[d] for d in after])
    source = np.lib.stride_tricks.as_strided(
        np.empty(1, np.uint8), shape, (*around[0], *[0] * len(middle), *around[1])
    )
    ones = ((1,) * len(before), (1,) * len(after))
    operands = [source]
    for entry in entries:
        if entry is not None:
            operands.append(_reshaped(np.broadcast_to(entry, middle), *ones))
    if all(_is_contiguous(operand) and operand.shape == shape for operand in operands):
        return None
    return cpu.operand_strides(shape, [_effective(operand, shape) for operand in operands])


def _reshaped(array: np.ndarray, before: tuple[int, ...], after: tuple[int, ...]) -> np.ndarray:
    shape = (*before, *array.shape, *after)
    if shape == array.shape:
        return array
    strides = view_strides(array, shape)
    if strides is None:
        strides = (0,) * len(shape)
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def _is_contiguous(array: np.ndarray) -> bool:
    return array.size == 0 or array.flags.c_contiguous


def _effective(array: np.ndarray, shape: tuple[int, ...]) -> tuple[int, ...]:
    steps = zip(array.strides, array.shape, shape, strict=True)
    return tuple([0 if have == 1 and wanted != 1 else step for step, have, wanted in steps])


# ---- writing


@writer("index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
        autocast="cuda=widest", saved_names={"values_shape": None},
        backward={
    "self": lambda grad, indices, values_shape, accumulate: grad if accumulate else ops.index_put(
        grad, indices, ops.new_zeros(grad, ())),
    "values": lambda grad, indices: ops.index(grad, indices),
})  # fmt: skip
def index_put(data: np.ndarray, indices: Arrays, values: np.ndarray, accumulate: bool) -> None:
    """Write `values` to the given positions, or add them there.

    `indices` broadcast to one shape, to which `values` broadcast.

    Of several values for one position the last one stays; with `accumulate` all are added.

    >>> import flambeau as torch
    >>> place = (torch.tensor([0, 1]), torch.tensor([1, 0]))
    >>> torch.index_put(torch.zeros(2, 2), place, torch.tensor([1., 2.]))
    tensor([[0., 1.],
            [2., 0.]])
    """
    one = not accumulate and values.size == 1
    quiet = one and sum(item is not None for item in indices) == 1
    try:
        key = checked_key(data.shape, indices, quiet)
    except IndexError:
        if not one:
            outputs.check_no_overlap(data, [values])  # memory is looked at first
        raise
    filling = one and _is_mask(key)
    if not filling:
        outputs.check_no_overlap(data, [values, *[item for item in key if item is not FULL]])
    if 0 in data.shape:
        _check_empty_dims(data.shape, integer_indices(data.shape, key))
    if data.dtype != values.dtype:
        if not filling:
            check_values(data, key, values)
            raise RuntimeError(
                "Index put requires the source and destination dtypes match, got "
                f"{_name(data)} for the destination and {_name(values)} for the source."
            )
        values = _cast(values.reshape(()), data.dtype)
    outputs.warn_overlap(data, "index_put_", "indices] = tensor")
    if accumulate:
        add_at(data, key, values)
    elif filling and len(key) == 1 and key[0].shape == data.shape:
        fill_where(data, key[0], values.reshape(()))
    else:
        put(data, key, values)


def _is_mask(key: tuple[Any, ...]) -> bool:
    masks = [item for item in key if item is not FULL]
    return len(masks) == 1 and masks[0].dtype == np.bool_


def _cast(values: np.ndarray, numpy_dtype: Any) -> np.ndarray:
    result = np.empty(values.shape, numpy_dtype)
    assign(result, values)
    return result


def _name(data: np.ndarray) -> str:
    return dt.from_numpy_dtype(data.dtype).scalar_name


def put(data: np.ndarray, key: tuple[Any, ...], values: np.ndarray) -> None:
    """`data[key] = values`, with torch's errors."""
    if values.ndim > 1 and values.shape[0] == 1:  # NumPy leaves out leading dims of size 1
        check_values(data, key, values)
    try:
        data[key] = values
    except (ValueError, TypeError):
        check_values(data, key, values)
        raise
    except IndexError:
        check_values(data, key, values)
        entries = integer_indices(data.shape, key)
        _check_bounds(data.shape, entries, result_shape(data.shape, entries))


def check_values(data: np.ndarray, key: tuple[Any, ...], values: np.ndarray) -> list[Any]:
    """Raise torch's error where values do not broadcast to the indexed part."""
    entries = integer_indices(data.shape, key)
    shape = result_shape(data.shape, entries)
    missing = len(shape) - values.ndim
    fits = missing >= 0 and all(
        have in (1, wanted) for have, wanted in zip(values.shape, shape[missing:], strict=True)
    )
    if not fits:
        raise _values_error(values.shape, shape)
    return entries


def _values_error(values: tuple[int, ...], shape: tuple[int, ...]) -> RuntimeError:
    return RuntimeError(
        f"shape mismatch: value tensor of shape {list(values)} cannot be broadcast to indexing "
        f"result of shape {list(shape)}"
    )


def add_at(data: np.ndarray, key: tuple[Any, ...], values: np.ndarray) -> None:
    """Add values at positions; positions may repeat. Half types add up in float32."""
    entries = check_values(data, key, values)
    shape = result_shape(data.shape, entries)
    if 0 in shape:
        _check_bounds(data.shape, entries, shape)
        return
    working = FLOAT32 if data.dtype in dt.NUMPY_HALVES else data.dtype
    direct = data.flags.c_contiguous and working == data.dtype
    total = data if direct else np.array(data, working, order="C")
    added = np.broadcast_to(values, shape).astype(working, copy=False)
    if not direct and working == data.dtype and _lies_on_itself(data):
        places = np.unravel_index(_linear_positions(data.shape, entries, shape), data.shape)
        np.add.at(data, places, added)  # one after the other
        return
    if _add_slices(total, entries, added):
        if not direct:
            data[...] = total
        return
    positions = _linear_positions(data.shape, entries, shape)
    flat, places, line = total.reshape(-1), positions.reshape(-1), added.reshape(-1)
    if not scatter.write_elements(flat, 0, places, line, "add"):
        np.add.at(flat, places, line)
    if not direct:
        data[...] = total


def _lies_on_itself(data: np.ndarray) -> bool:
    """Whether an array has more elements than places in memory."""
    steps = zip(data.shape, data.strides, strict=True)
    return sum([(size - 1) * abs(step) for size, step in steps]) // data.itemsize + 1 < data.size


def _add_slices(total: np.ndarray, entries: list[Any], values: np.ndarray) -> bool:
    """The short way for positions in one dim; whether it was taken."""
    used = [dim for dim, entry in enumerate(entries) if entry is not None]
    if len(used) != 1:
        return False
    return scatter.write_rows(total, used[0], entries[used[0]], values, "add")


def _linear_positions(sizes: tuple[int, ...], entries: list[Any],
                      shape: tuple[int, ...]) -> np.ndarray:  # fmt: skip
    """Positions in row-major memory of everything that the entries name."""
    before, _, after = _split_dims(entries)
    middle = len(index_shape(entries))
    steps = [int(np.prod(sizes[dim + 1 :], dtype=np.int64)) for dim in range(len(sizes))]
    total: Any = np.int64(0)
    for dim, entry in enumerate(entries):
        if entry is None:
            continue
        size = sizes[dim]
        if entry.size and (entry.min() < -size or entry.max() >= size):
            _check_bounds(sizes, entries, shape)
        wrapped = np.where(entry < 0, entry + size, entry).astype(np.int64, copy=False)
        total = total + (wrapped * steps[dim]).reshape(wrapped.shape + (1,) * len(after))
    for place, dim in enumerate([*before, *after]):
        right = len(shape) - 1 - (place if place < len(before) else place + middle)
        line = np.arange(sizes[dim]) * steps[dim]
        total = total + line.reshape((-1,) + (1,) * right)
    return np.broadcast_to(total, shape)


@kernel(
    "_index_backward(Tensor grad_output, int[] input_sizes, Tensor?[] indices) -> Tensor",
    devices="any",
    batch="index",
    method=False,
    function=False,
    node="IndexBackwardBackward0",
    backward={"grad_output": lambda grad, indices: ops.index(grad, indices)},
)
def index_backward(grad: np.ndarray, input_sizes: Any, indices: Arrays) -> np.ndarray:
    """The gradient of `index`: zeros, with the gradient added where elements were read."""
    result = np.zeros(tuple(input_sizes), grad.dtype)
    if grad.size == 0:
        return result
    key = checked_key(result.shape, indices)
    if _reads_once(key):
        result[key] = grad
    else:
        add_at(result, key, grad)
    return result


def _reads_once(key: tuple[Any, ...]) -> bool:
    """Whether no element can be named twice: a single mask, or one scalar position."""
    used = [item for item in key if item is not FULL]
    return len(used) == 1 and (used[0].dtype == np.bool_ or used[0].size == 1)
