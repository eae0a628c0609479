"""The functions by which files describe tensors, with every argument checked.

Files call them under the names of `torch._utils`; no view exists before its sizes, strides and
offset have been compared with the storage.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from pickle import UnpicklingError
from typing import Any, NoReturn

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.device import device
from flambeau._core.layout import Size, _Constant, layout
from flambeau._ops.views.geometry import without_elements
from flambeau._runtime.cpu import over
from flambeau._tensor import meta
from flambeau._tensor.bits import set_bits
from flambeau._tensor.tensor import Tensor, constructors, without_memory, wrap
from flambeau.serialization.allowed import COPYING, Row
from flambeau.serialization.checks import brief, expect, is_dunder
from flambeau.serialization.sparse import rebuild_sparse_tensor
from flambeau.serialization.storages import LARGEST, STORAGE_ROWS, LoadedStorage

MAX_DIMS = 64
MOST_ADDRESSES = 1 << 46
"""Bytes of the largest tensor without memory."""
MAX_DEVICES = 128  # of one kind: torch keeps the index in a signed byte
LONGEST_ERROR = 500


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST


def _counts(values: Any, what: str) -> tuple[int, ...]:
    expect(isinstance(values, tuple | list), f"the {what} of a tensor must be a tuple")
    expect(len(values) <= MAX_DIMS, f"a tensor cannot have {len(values)} dims")
    expect(all(map(_is_count, values)), f"{brief(values)} is no {what} of a tensor")
    return tuple(values)


def view_of(storage: Any, offset: Any, size: Any, stride: Any, dtype: dt.dtype) -> np.ndarray:
    """The ndarray that lies in `storage` at these coordinates, counted in elements."""
    expect(isinstance(storage, LoadedStorage), f"a tensor needs a storage, got {type(storage)}")
    expect(_is_count(offset), f"{brief(offset)} is no offset of a tensor")
    size, stride = _counts(size, "size"), _counts(stride, "stride")
    expect(len(size) == len(stride), f"sizes {size} and strides {stride} differ in length")
    expect(prod(size) * dtype.itemsize <= LARGEST, f"a tensor cannot have the size {size}")
    # A dim of size 1 never steps and an empty tensor has no element, so that their strides may be
    # anything; NumPy wants them to fit 64 bits.
    steps = [min(step, LARGEST // dtype.itemsize) * dtype.itemsize for step in stride]
    if 0 in size:
        start = min(offset * dtype.itemsize, storage.nbytes())
        return without_elements(storage.array, size, tuple(steps), start, dtype.numpy_dtype)
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    expect(
        (last + 1) * dtype.itemsize <= storage.nbytes(),
        f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and "
        f"itemsize {dtype.itemsize} requiring a storage size of {(last + 1) * dtype.itemsize} "
        f"are out of bounds for storage of size {storage.nbytes()}",
    )
    return over(storage.array, size, dtype.numpy_dtype, offset * dtype.itemsize, steps)  # type: ignore[no-any-return]


def _tensor(data: np.ndarray, storage: LoadedStorage, requires_grad: Any, metadata: Any) -> Tensor:
    on_meta = storage.untyped().device.type == "meta"
    result = wrap(np.ndarray.view(data, meta.Meta) if on_meta else data)
    result._storage = storage.untyped()
    result._version_count = 1  # it counts as having been pointed to its memory
    if metadata:
        expect(type(metadata) is dict, "the metadata of a tensor must be a dict")
        expect(set(metadata) <= {"conj", "neg"}, "a tensor has metadata of an unknown kind")
        _set_bits(result, metadata)
    return _set_requires_grad(result, requires_grad)


def _set_bits(tensor: Tensor, metadata: dict[str, Any]) -> None:
    """The conjugate and the negative bit, by which torch's views differ from their memory."""
    conjugated, negated = (metadata.get(name, False) for name in ("conj", "neg"))
    are_bits = type(conjugated) is bool and type(negated) is bool
    expect(are_bits, "the conjugate and negative bits of a tensor are True or False")
    expect(tensor.dtype.is_complex or not conjugated, "real numbers have no conjugate bit")
    set_bits(tensor, conjugated, negated)


def _set_requires_grad(tensor: Tensor, requires_grad: Any) -> Tensor:
    expect(type(requires_grad) is bool, "requires_grad of a tensor must be a bool")
    _check_differentiable(tensor, requires_grad)
    if requires_grad:
        tensor._requires_grad = True
    return tensor


def _check_differentiable(tensor: Tensor, requires_grad: bool) -> None:
    is_fine = not requires_grad or tensor.dtype.is_floating_point or tensor.dtype.is_complex
    expect(is_fine, "only Tensors of floating point dtype can require gradients")


def rebuild_tensor(storage: Any, storage_offset: Any, size: Any, stride: Any) -> Tensor:
    """A tensor of the storage's own element type."""
    return rebuild_tensor_v2(storage, storage_offset, size, stride, False, None)


def rebuild_tensor_v2(
    storage: Any,
    storage_offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor of the storage's own element type. Hooks are never saved; the argument is empty."""
    _check_hooks(backward_hooks)
    expect(isinstance(storage, LoadedStorage), f"a tensor needs a storage, got {type(storage)}")
    data = view_of(storage, storage_offset, size, stride, storage.dtype)
    return _tensor(data, storage, requires_grad, metadata)


def _check_hooks(hooks: Any) -> None:
    is_empty = hooks is None or (isinstance(hooks, dict | list | tuple) and not hooks)
    expect(is_empty, "a tensor in a file cannot have hooks")


def rebuild_tensor_v3(
    storage: Any,
    storage_offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor over an untyped storage; offset, size and stride count elements of `dtype`."""
    expect(isinstance(dtype, dt.dtype), f"{brief(dtype)} is no dtype")
    expect(isinstance(storage, LoadedStorage), f"a tensor needs a storage, got {type(storage)}")
    _check_hooks(backward_hooks)
    # Untyped bytes may begin anywhere; kernels rely on elements in their places.
    is_aligned = storage.data_ptr() % dtype.itemsize == 0
    expect(is_aligned, f"a storage of {dtype} begins at an odd place")
    storage.swap(dtype)
    data = view_of(storage, storage_offset, size, stride, dtype)
    return _tensor(data, storage, requires_grad, metadata)


def rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any) -> Tensor:
    """A Parameter over a tensor."""
    _check_hooks(backward_hooks)
    from flambeau.nn import Parameter

    expect(isinstance(data, Tensor), f"a Parameter needs a tensor, got {type(data)}")
    expect(type(requires_grad) is bool, "requires_grad of a Parameter must be a bool")
    _check_differentiable(data, requires_grad)
    return Parameter(data, requires_grad)  # type: ignore[no-any-return]


def rebuild_parameter_with_state(
    data: Any, requires_grad: Any, backward_hooks: Any, state: Any
) -> Tensor:
    """A Parameter with attributes of the user's own."""
    return set_state(rebuild_parameter(data, requires_grad, backward_hooks), state)


def rebuild_from_type_v2(function: Any, new_type: Any, arguments: Any, state: Any) -> Tensor:
    """A tensor of a subclass, or one with attributes of the user's own."""
    known = any(function is row.value for row in REBUILD_ROWS.values())
    expect(known and function is not rebuild_from_type_v2, f"cannot rebuild with {brief(function)}")
    expect(type(arguments) is tuple, "the arguments of a rebuild must be a tuple")
    is_tensor_type = isinstance(new_type, type) and issubclass(new_type, Tensor)
    expect(is_tensor_type, f"{brief(new_type)} is no Tensor type")
    result = function(*arguments)
    if type(result) is not new_type:
        result = constructors["of_class"](result, new_type)
    if hasattr(new_type, "__setstate__"):
        result.__setstate__(state)
        return result  # type: ignore[no-any-return]
    return set_state(result, state)


def set_state(tensor: Tensor, state: Any) -> Tensor:
    """Set attributes from a file; names that Tensor itself uses are refused."""
    slots: Any = None
    if type(state) is tuple and len(state) == 2:
        state, slots = state
    for attributes in (state, slots):
        if not attributes:
            continue
        expect(type(attributes) is dict, "the state of a tensor must be a dict")
        for name, value in attributes.items():
            expect(type(name) is str and is_user_attribute(name), f"{brief(name)} cannot be set")
            setattr(tensor, name, value)
    return tensor


def is_user_attribute(name: str) -> bool:
    """Whether an attribute of a tensor is the user's and no field of Tensor."""
    return name != "_data" and not is_dunder(name) and not hasattr(Tensor, name)


def rebuild_meta_tensor(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """A tensor without memory."""
    expect(isinstance(dtype, dt.dtype), f"{brief(dtype)} is no dtype")
    sizes, steps = _counts(size, "size"), _counts(stride, "stride")
    expect(len(sizes) == len(steps), f"sizes {sizes} and strides {steps} differ in length")
    last = sum((n - 1) * step for n, step in zip(sizes, steps, strict=True) if n)
    expect((last + 1) * dtype.itemsize <= MOST_ADDRESSES, f"a tensor cannot have the size {sizes}")
    result = wrap(without_memory(np.empty(0, np.uint8)))
    result._data = meta.empty(sizes, steps, dtype.numpy_dtype)
    return _set_requires_grad(result, requires_grad)


def _not_supported(name: str, kind: str) -> Callable[..., NoReturn]:
    def rebuild(*arguments: Any) -> NoReturn:
        raise NotImplementedError(f"torch._utils.{name}: {kind} tensors are not supported")

    return rebuild


def get_layout(name: Any) -> _Constant:
    """The layout of a name such as "torch.strided"."""
    expect(type(name) is str, "the name of a layout must be a str")
    short = name.removeprefix("torch.")
    expect(short in layout.table, f"unknown layout {brief(name)}")
    return layout.table[short]


def make_size(*arguments: Any) -> Size:
    """A `torch.Size`."""
    return Size(_counts(arguments[0], "size") if arguments else ())


def make_device(*arguments: Any) -> device:
    """A `torch.device` from its name and, apart from it, its index."""
    expect(1 <= len(arguments) <= 2 and type(arguments[0]) is str, "a device needs its name")
    is_index = len(arguments) == 1 or (
        type(arguments[1]) is int and 0 <= arguments[1] < MAX_DEVICES
    )
    expect(is_index, f"the index of a device is an int below {MAX_DEVICES}")
    try:
        return device(*arguments)
    except RuntimeError as error:
        raise UnpicklingError(f"{error}"[:LONGEST_ERROR]) from None


def _function_row(function: Callable[..., Any]) -> Row:
    return Row(function, function)


REBUILD_ROWS = {
    "torch._utils._rebuild_tensor": _function_row(rebuild_tensor),
    "torch._utils._rebuild_tensor_v2": _function_row(rebuild_tensor_v2),
    "torch._utils._rebuild_tensor_v3": _function_row(rebuild_tensor_v3),
    "torch._utils._rebuild_parameter": _function_row(rebuild_parameter),
    "torch._utils._rebuild_parameter_with_state": _function_row(rebuild_parameter_with_state),
    "torch._utils._rebuild_sparse_tensor": _function_row(rebuild_sparse_tensor),
    "torch._utils._rebuild_meta_tensor_no_storage": _function_row(rebuild_meta_tensor),
    "torch._tensor._rebuild_from_type_v2": _function_row(rebuild_from_type_v2),
}
COPYING.update((id(rebuild_parameter_with_state), id(rebuild_from_type_v2)))
UNSUPPORTED = {
    "_rebuild_qtensor": "quantized",
    "_rebuild_nested_tensor": "nested",
    "_rebuild_wrapper_subclass": "wrapper",
    "_rebuild_device_tensor_from_numpy": "other devices'",
    "_rebuild_device_tensor_from_cpu_tensor": "other devices'",
}
TORCH_ROWS = {
    **STORAGE_ROWS,
    **REBUILD_ROWS,
    **{
        f"torch._utils.{name}": _function_row(_not_supported(name, kind))
        for name, kind in UNSUPPORTED.items()
    },
    **{f"torch.{entry.name}": Row(entry) for entry in dt.ALL},
    "torch.Tensor": Row(Tensor),
    "torch.Size": Row(Size, make_size),
    "torch.device": Row(device, make_device),
    "torch.serialization._get_layout": _function_row(get_layout),
}


class ParameterName:
    """Stands for Parameter on the safe interpreter's stack, so that `nn` loads only if needed."""


def _new_parameter(*arguments: Any) -> Tensor:
    expect(len(arguments) in (1, 2), "a Parameter takes a tensor and requires_grad")
    requires_grad = arguments[1] if len(arguments) == 2 else True
    return rebuild_parameter(arguments[0], requires_grad, None)


# What a safe load may name of torch.
SAFE_ROWS = {
    **TORCH_ROWS,
    "torch.nn.parameter.Parameter": Row(ParameterName, create=_new_parameter),
}
