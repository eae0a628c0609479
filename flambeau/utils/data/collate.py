"""From a list of samples to a batch, and from NumPy arrays to tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from flambeau._core.device import Defaults
from flambeau._core.dtype import float64
from flambeau._core.layout import strided
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor, wrap

NOT_COLLATED = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)
LARGE = 1 << 63
TEXT_OR_OBJECTS = frozenset("SaUO")
"""Kinds of NumPy arrays that no tensor can hold."""


# ---- containers


def _like_mapping(like: Any, found: dict[Any, Any]) -> Any:
    """The items in a mapping of the same type, with its other attributes; else in a dict."""
    try:
        if not isinstance(like, MutableMapping):
            return type(like)(found)
        clone = copy.copy(like)
        clone.update(found)
        return clone
    except TypeError:  # the type can't be copied, updated or made of a dict
        return found


def _like_sequence(like: Any, found: list[Any]) -> Any:
    """The elements in a sequence of the same type; else in a list."""
    try:
        if not isinstance(like, MutableSequence):
            return type(like)(found)  # type: ignore[call-arg]
        clone = copy.copy(like)
        for place, value in enumerate(found):
            clone[place] = value
        return clone
    except TypeError:  # such as range, which can't be made of a list
        return found


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


# ---- converting


def default_convert(data: Any) -> Any:
    """The same data with tensors in place of NumPy arrays and numbers, in containers too.

    >>> import numpy as np
    >>> default_convert({"a": np.arange(2)})
    {'a': tensor([0, 1])}
    """
    if isinstance(data, Tensor):
        return data
    if isinstance(data, np.ndarray) and data.dtype.kind in TEXT_OR_OBJECTS:
        return data
    if isinstance(data, (np.ndarray, np.generic)) and not isinstance(data, (np.str_, np.bytes_)):
        return ops.as_tensor(data)
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(data[key]) for key in data})
    if _is_named_tuple(data):
        return type(data)(*[default_convert(value) for value in data])
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(value) for value in data])
    return data


# ---- collating


def collate(batch: Any, *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None) -> Any:
    """A list of samples as one batch. `collate_fn_map` says, by the type of the samples, which
    function makes a batch of them; containers of what it names are gone through.

    Raises:
        RuntimeError: samples are sequences of different lengths.
        TypeError: nothing says what becomes of samples of this type.
    """
    first = batch[0]
    function = _function_for(first, collate_fn_map or {})
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)

    def joined(samples: Any) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return _like_mapping(first, {key: joined([s[key] for s in batch]) for key in first})
    if _is_named_tuple(first):
        return type(first)(*[joined(column) for column in zip(*batch, strict=False)])
    if not isinstance(first, Sequence):
        raise TypeError(NOT_COLLATED.format(type(first)))
    if set(map(len, batch)) != {len(first)}:
        raise RuntimeError("each element in list of batch should be of equal size")
    columns = [joined(column) for column in zip(*batch, strict=True)]
    return columns if isinstance(first, tuple) else _like_sequence(first, columns)


def _function_for(sample: Any, functions: dict[Any, Callable[..., Any]]) -> Any:
    """The function of the sample's own type, or of the first type that it is an instance of."""
    found = functions.get(type(sample))
    if found is None:
        for kind, function in functions.items():
            if isinstance(sample, kind):
                return function
    return found


def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Tensors of one shape, stacked along a new first dim."""
    if batch[0].layout is not strided:
        raise RuntimeError(
            "Batches of sparse tensors are not currently supported by the default collate_fn; "
            "please provide a custom collate_fn to handle them appropriately."
        )
    stacked: Tensor | None = _stacked(batch)
    return ops.stack(batch, 0) if stacked is None else stacked


def _stacked(tensors: Any) -> Tensor | None:
    """What `stack` gives for many small tensors, sooner: an epoch of those is mostly calls. None
    where there is more to it: gradients, dtypes or shapes that differ, subclasses.

    See benchmarks/data_loading.py, "20,000 small samples".
    """
    arrays = [t._data for t in tensors if type(t) is Tensor and not t._requires_grad
              and (t._base is None or not t._base._requires_grad)]  # fmt: skip
    if len(arrays) != len(tensors) or set(map(type, arrays)) != {np.ndarray}:
        return None
    first = arrays[0]
    if not first.ndim or not first.size or not first.flags.c_contiguous:
        return None
    if list(map(len, arrays)).count(len(first)) < len(arrays):
        return None
    if [array.dtype for array in arrays].count(first.dtype) < len(arrays):
        return None
    try:
        joined = np.concatenate(arrays)  # which compares all dims but the first
    except ValueError:
        return None
    return wrap(joined.reshape(len(arrays), *first.shape))


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Arrays of one shape, stacked into a tensor."""
    if batch[0].dtype.kind in TEXT_OR_OBJECTS:
        raise TypeError(NOT_COLLATED.format(batch[0].dtype))
    return collate([ops.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """NumPy numbers as a vector of their type."""
    vector: Tensor = ops.as_tensor(batch)
    return vector


def collate_float_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Python floats as a float64 vector."""
    if set(map(type, batch)) == {float} and not Defaults.touched:
        return wrap(np.array(batch, np.float64))  # sooner; see benchmarks/data_loading.py
    vector: Tensor = ops.as_tensor(batch, dtype=float64)
    return vector


def collate_int_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Python ints as an int64 vector, bools as a bool vector."""
    small = set(map(type, batch)) == {int} and min(batch) >= -LARGE and max(batch) < LARGE
    if small and not Defaults.touched:
        return wrap(np.array(batch, np.int64))  # sooner; see benchmarks/data_loading.py
    vector: Tensor = ops.as_tensor(batch)
    return vector


def collate_str_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Text stays a list."""
    return batch


default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}
"""What `default_collate` does with samples of a type; types may be added."""


def default_collate(batch: Any) -> Any:
    """A list of samples as one batch, with a new first dim.

    Tensors and arrays are stacked, numbers become a vector, text stays a list; mappings,
    sequences and named tuples keep their type and hold batches (tuples become lists).

    >>> default_collate([(1, 2.5, "a"), (3, 4.5, "b")])
    [tensor([1, 3]), tensor([2.5000, 4.5000], dtype=torch.float64), ('a', 'b')]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
