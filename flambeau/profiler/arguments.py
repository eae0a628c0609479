"""The arguments of operators, as a recording keeps them: without the tensors."""

from __future__ import annotations

from typing import Any, NamedTuple

from flambeau._tensor.tensor import Tensor


class Argument(NamedTuple):
    """A tensor: its shape, its strides in elements, and its dtype."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any


def given(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, with an Argument for each tensor; what PyTorch's `record_shapes` notes."""
    return tuple([_kept(value) for value in values])


def _kept(value: Any) -> Any:
    if isinstance(value, Tensor):
        if value.is_sparse:
            return Argument(tuple(value.shape), (), value.dtype)
        data = value._data
        size = data.itemsize
        return Argument(data.shape, tuple([step // size for step in data.strides]), value.dtype)
    if isinstance(value, (list, tuple)):
        return [_kept(item) for item in value]
    return value


# ---- in PyTorch's words

NUMBERS = (bool, int, float, complex)


def is_tensor_list(value: Any) -> bool:
    """Whether an argument is a list of tensors."""
    return type(value) is list and any(isinstance(item, Argument) for item in value)


def shape(value: Any) -> list[Any]:
    """[] of what is no tensor; a list of shapes of a list of tensors."""
    if is_tensor_list(value):
        return [shape(item) for item in value if item is not None]
    return list(value.shape) if isinstance(value, Argument) else []


def strides(value: Any) -> list[Any]:
    """The same for strides."""
    if is_tensor_list(value):
        return [strides(item) for item in value if item is not None]
    return list(value.strides) if isinstance(value, Argument) else []


def type_name(value: Any) -> str:
    """ "float", "TensorList", "Scalar", "ScalarList"; "" of what is none of these."""
    if isinstance(value, Argument):
        return str(value.dtype.c_name)
    if is_tensor_list(value):
        return "TensorList"
    if isinstance(value, list):
        return "ScalarList"
    return "Scalar" if isinstance(value, NUMBERS) else ""


def number(value: Any) -> Any:
    """What is no tensor; None of one."""
    return None if isinstance(value, Argument) or is_tensor_list(value) else value
