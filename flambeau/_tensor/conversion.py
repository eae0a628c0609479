"""Between tensors, Python values and ndarrays: `tensor`, `from_numpy`, `numpy`, `tolist`."""

from __future__ import annotations

import warnings
from functools import reduce
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._core.device import CPU, META, Defaults, prepare, refuse_pinned
from flambeau._core.parts import real_part
from flambeau._core.promotion import dtype_of_number, promote_types
from flambeau._core.settings import warn_once
from flambeau._runtime.cpu import QUIET, converted, enter_quiet, leave_quiet
from flambeau._tensor.device_array import DeviceArray, to_host
from flambeau._tensor.numberless import Numberless
from flambeau._tensor.storage import UntypedStorage, elements_under, is_storage
from flambeau._tensor.tensor import Tensor, lend, method, placed, shown, wrap


@shown("lift_fresh")
def tensor(
    data: Any,
    *,
    dtype: dt.dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new tensor with a copy of `data`: a number, nested sequences, an array or a tensor.

    Without `dtype`, Python floats give the default type, ints int64, bools bool; arrays and tensors
    keep theirs.

    >>> import flambeau as torch
    >>> torch.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    if pin_memory is not False:
        refuse_pinned("tensor", pin_memory, optional=False)
    if device is not None or Defaults.touched or Defaults.elsewhere:
        on_gpu = isinstance(data, Tensor) and data.is_cuda
        prepare(data.device if device is None and on_gpu else device)
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than "
            "torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
    result = wrap(copy_of(data, dtype))
    if Defaults.elsewhere:
        result._data = placed(result._data)
    if requires_grad is not False and _is_flag(requires_grad):
        if result._data.dtype.kind not in "fcVW":
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        result.requires_grad = True
    return result


def _is_flag(requires_grad: Any) -> bool:
    """The option as a bool; TypeError if it is none."""
    if isinstance(requires_grad, (bool, np.bool_)):
        return bool(requires_grad)
    raise TypeError("tensor(): argument 'requires_grad' must be bool, not "
                    f"{type(requires_grad).__name__}")  # fmt: skip


FLOATS, INTS, LISTS = {float}, {int}, {list}
INT64 = np.dtype(np.int64)


def copy_of(data: Any, dtype: dt.dtype | None) -> np.ndarray:
    """New memory with the values of anything that `tensor` accepts.

    Numbers beyond the type become infinite without a warning, as in torch.
    """
    token = enter_quiet(QUIET)
    try:
        return _copy_of(data, None if dtype is None else _numpy_dtype(dtype))
    finally:
        leave_quiet(token)


def _numpy_dtype(asked: Any) -> Any:
    chosen = dt.as_dtype(asked)
    if not isinstance(chosen, dt.dtype):
        raise TypeError(f"argument 'dtype' must be torch.dtype, not {type(asked).__name__}")
    return chosen.numpy_dtype


def _copy_of(data: Any, wanted: Any) -> np.ndarray:
    if type(data) is float and (wanted is None or wanted.kind not in "iu"):
        return converted(data, wanted or dt.Defaults.numpy_dtype)
    kinds = _kinds(data) if type(data) is list else None
    if kinds in (FLOATS, INTS):
        try:
            return converted(data, wanted or (INT64 if kinds == INTS else dt.Defaults.numpy_dtype))
        except (OverflowError, TypeError, ValueError):  # NaN: the last; ml_dtypes: the second
            return _from_python(data, wanted)
    if isinstance(data, Tensor):
        return _cast(numbers_of(data), wanted)
    if isinstance(data, np.ndarray) or hasattr(data, "__array_interface__"):
        return _copy_array(np.asarray(data), wanted)
    if isinstance(data, np.generic):
        return _copy_array(np.asarray(data), wanted)
    if hasattr(data, "__array__") and not isinstance(data, (list, tuple)):
        return _copy_array(np.asarray(data), wanted)
    return _from_python(data, wanted)


def _kinds(data: list[Any]) -> set[type] | None:
    """The classes of the items of a list, or of those of its rows, if they are as many each."""
    kinds = set(map(type, data))
    if kinds != LISTS:
        return kinds
    if len(set(map(len, data))) > 1:
        return None
    return set().union(*[map(type, row) for row in data])


def _copy_array(array: np.ndarray, wanted: Any) -> np.ndarray:
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    dt.from_numpy_dtype(array.dtype)
    return _cast(array, wanted)


def _cast(array: np.ndarray, wanted: Any) -> np.ndarray:
    """A copy of an array in a type; that complex numbers lose a part is warned of."""
    if wanted is not None and array.dtype.kind in "cW" and wanted.kind not in "cbW":
        warn_once(HALF_LOST, 5)
        array = real_part(array)
    return converted(array, wanted)


HALF_LOST = "Casting complex values to real discards the imaginary part"
LIST_OF_ARRAYS = (
    "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting "
    "the list to a single numpy.ndarray with numpy.array() before converting to a tensor."
)


def _from_python(data: Any, wanted: Any) -> np.ndarray:
    """Numbers and nested sequences of numbers, arrays and tensors."""
    if isinstance(data, str):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if is_storage(data):
        plain = getattr(data, "dtype", dt.int64)
        element = plain if wanted is None else dt.from_numpy_dtype(wanted)
        return elements_under(data, element).copy()
    shape = _shape_of(data)
    flat: list[Any] = []
    types: set[Any] = set()
    _flatten(data, shape, 0, flat, types)
    strange = next((kind for kind in types if isinstance(kind, type)), None)
    if strange is not None:
        _need_float(strange, wanted)
    if wanted is None:
        wanted = reduce(promote_types, types or {dt.default_dtype()}).numpy_dtype
    return _fill(flat, wanted).reshape(shape)


def _need_float(kind: type, wanted: Any) -> None:
    """A class of numbers that has no element type of its own, as `Fraction`, needs to be told one,
    and one that its `__float__` fits."""
    name = f"decimal.{kind.__name__}" if kind.__module__ == "decimal" else kind.__name__
    if wanted is None:
        raise RuntimeError(f"Could not infer dtype of {name}")
    if wanted.kind in "biu" and not hasattr(kind, "__index__"):
        raise TypeError(f"'{name}' object cannot be interpreted as an integer")


def _shape_of(data: Any) -> tuple[int, ...]:
    """The shape that the first elements show."""
    shape = []
    while _is_sequence(data):
        length = len(data)
        shape.append(length)
        if length == 0:
            break
        try:
            data = data[0]
        except TypeError:
            raise ValueError(
                f"could not determine the shape of object type '{type(data).__name__}'"
            ) from None
    return tuple(shape)


def _is_sequence(data: Any) -> bool:
    if isinstance(data, Tensor):
        return False
    if isinstance(data, np.ndarray):
        return data.ndim > 0
    if isinstance(data, (list, tuple)):
        return True
    if isinstance(data, (str, bytes, int, float, dict)):
        return False
    return hasattr(data, "__len__") and hasattr(data, "__getitem__")


def _flatten(data: Any, shape: tuple[int, ...], depth: int, flat: list[Any],
             types: set[Any]) -> None:  # fmt: skip
    """Put the numbers in `flat`, and the element types that they stand for in `types`."""
    if depth == len(shape):
        if _is_sequence(data):
            if any(item is data for item in data):
                raise TypeError("new(): self-referential lists are incompatible")
            raise TypeError(f"only scalar types are expected at dim {depth}, "
                            f"got {type(data).__name__}")  # fmt: skip
        flat.append(_number(data))
        types.add(_dtype_of(data))
        return
    if isinstance(data, Tensor):
        types.add(data.dtype)
        flat.extend(data._data.reshape(-1).tolist())
        return
    if not _is_sequence(data):
        raise TypeError("not a sequence")
    if len(data) != shape[depth]:
        raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} "
                         f"(got {len(data)})")  # fmt: skip
    if depth and isinstance(data, np.ndarray):
        warn_once(LIST_OF_ARRAYS, 6 + depth)
    is_row = depth == len(shape) - 1 and len(data) and type(data[0]) in (float, int)
    if is_row and all(type(item) in (float, int, bool) for item in data):
        flat.extend(data)
        types.update(map(dtype_of_number, dict(zip(map(type, data), data, strict=True)).values()))
        return
    for item in data:
        _flatten(item, shape, depth + 1, flat, types)


def _number(value: Any) -> Any:
    if isinstance(value, (bool, int, float, complex)):
        return value
    if isinstance(value, Tensor):
        if value._data.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        if value.requires_grad:
            warn_once(SCALAR_OF_GRAD, 8)
        return value._data.item()
    if isinstance(value, (np.generic, np.ndarray)) and value.size == 1:
        return value.item()
    for converter in ("__index__", "__float__", "__complex__"):
        if hasattr(value, converter):
            return getattr(value, converter)()
    if isinstance(value, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(value).__name__}'")
    raise RuntimeError(f"Could not infer dtype of {type(value).__name__}")


def _dtype_of(item: Any) -> dt.dtype | type:
    """The element type that an item stands for; its class if it stands for none."""
    if isinstance(item, Tensor):
        return item.dtype
    if isinstance(item, (np.generic, np.ndarray)):
        return dt.from_numpy_dtype(item.dtype)
    if isinstance(item, (bool, int, float, complex)):
        return dtype_of_number(item)
    return type(item)


def _fill(flat: list[Any], wanted: np.dtype[Any]) -> np.ndarray:
    """Numbers converted as C would: float32 overflows to inf, integers must fit."""
    with np.errstate(all="ignore"):
        try:
            return converted(flat, wanted)
        except (OverflowError, ValueError):
            if wanted.kind in "iu":
                return np.array([_wrapped(v, wanted) for v in flat], np.uint64).astype(wanted)
            return converted([float(v) for v in flat], wanted)
        except TypeError:
            if any(isinstance(value, complex) for value in flat):
                said = ("'complex' object cannot be interpreted as an integer"
                        if wanted.kind in "iu" else "must be real number, not complex")  # fmt: skip
                raise TypeError(said) from None
            return np.array(flat).astype(wanted)


def _wrapped(value: Any, wanted: np.dtype[Any]) -> int:
    """A number as the bits of an integer type; unsigned ones take negative integers, too."""
    limits = np.iinfo(wanted)
    lowest = limits.min if wanted.kind == "i" or isinstance(value, float) else -limits.max
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    if not lowest <= value <= limits.max:
        raise RuntimeError(f"value cannot be converted to type {wanted.name} without overflow")
    return int(value) % (1 << 64)


@shown("lift_fresh")
def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor over the memory of an ndarray; both see writes of either.

    >>> import flambeau as torch
    >>> import numpy
    >>> array = numpy.zeros(2)
    >>> torch.from_numpy(array)[0] = 1
    >>> array
    array([1., 0.])
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    if not array.dtype.isnative:
        raise ValueError("given numpy array has byte order different from the native byte order. "
                         "Conversion between byte orders is currently not supported.")  # fmt: skip
    dt.from_numpy_dtype(array.dtype)
    if min(array.strides, default=0) < 0:
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative "
            "strides are not currently supported. (You can probably work around this by making a "
            "copy of your array  with array.copy().) "
        )
    if any(step % array.itemsize for step in array.strides):
        raise ValueError("given numpy array strides not a multiple of the element byte size. Copy "
                         "the numpy array to reallocate the memory.")  # fmt: skip
    if not array.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable "
            "tensors. This means writing to this tensor will result in undefined behavior. You may "
            "want to copy the array to protect its data or make it writable before converting it "
            "to a tensor. This type of warning will be suppressed for the rest of this program.",
            UserWarning,
            stacklevel=2,
        )
    result = wrap(array.view(np.ndarray))
    result._storage = UntypedStorage.exactly(result._data)
    return result


# ---- methods


NO_NUMPY = (
    "can't convert {} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
    "memory first."
)


def _refuse_numpy(tensor: Tensor) -> None:
    """Raises TypeError where the memory is not the CPU's."""
    place = tensor.device
    if place is not CPU:
        raise TypeError(NO_NUMPY.format(place))


@method
def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """An ndarray of the same shape over the same memory: what is written to one is seen in both.

    force: detach, copy to the CPU and write bits out first, where that is needed.

    Raises RuntimeError for a tensor that requires grad (`x.detach().numpy()`), and TypeError for
    one on a GPU (`x.cpu().numpy()`) or of a type that NumPy has not (`bfloat16`).

    >>> import flambeau as torch
    >>> torch.tensor([1.0, 2.0]).numpy()
    array([1., 2.], dtype=float32)
    """
    if self.requires_grad and modes.grad.enabled and not force:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use "
                           "tensor.detach().numpy() instead.")  # fmt: skip
    if self._data.__class__ is not np.ndarray:
        if not force or self.device is META:
            _refuse_numpy(self)
        if self.device is CPU:
            return self._data.view()
        return self.cpu().numpy(force=True)  # type: ignore[attr-defined, no-any-return]
    if self._data.dtype.kind in "VW":
        raise TypeError(f"Got unsupported ScalarType {self.dtype.scalar_name}")
    lend(self)
    return self._data.view()


@method
def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    if self.requires_grad and modes.grad.enabled:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use "
                           "tensor.detach().numpy() instead.")  # fmt: skip
    if self._data.__class__ is not np.ndarray:
        _refuse_numpy(self)
    if copy:
        return np.array(self._data, dtype)
    lend(self)
    return np.asarray(self._data, dtype)


@method
@shown("_local_scalar_dense")
def item(self: Tensor) -> Any:
    """The value of a tensor of one element as a Python number, whatever its shape.

    `tolist` is for more than one, which raise RuntimeError here. On a GPU it waits for the result.

    >>> import flambeau as torch
    >>> torch.tensor([2.5]).item()
    2.5
    """
    if self._data.size != 1:
        raise RuntimeError(
            f"a Tensor with {self._data.size} elements cannot be converted to Scalar"
        )
    value = self._data.item()
    return value if self._data.dtype.kind != "V" else float(value)


@method
def tolist(self: Tensor) -> Any:
    """Nested lists of Python numbers (a number for a 0-dim tensor).

    >>> import flambeau as torch
    >>> torch.tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    data = numbers_of(self)
    return data.tolist() if data.dtype.kind != "V" else data.astype(np.float32).tolist()


def numbers_of(tensor: Tensor) -> np.ndarray:
    """The array of a tensor; a copy on the host where it lies on a GPU."""
    data = tensor._data
    return to_host(data) if isinstance(data, DeviceArray) else data


SCALAR_OF_GRAD = (
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
    "Consider using tensor.detach() first."
)


def _single(self: Tensor) -> Any:
    data = self._data
    if data.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    if self._requires_grad:
        warnings.warn(SCALAR_OF_GRAD, UserWarning, stacklevel=3)
    return data.item()


@method
@shown("_local_scalar_dense")
def __bool__(self: Tensor) -> bool:
    data = self._data
    if data.size == 1:
        if isinstance(data, Numberless) and not isinstance(data, DeviceArray):
            raise type(data.no_branch)(*data.no_branch.args)
        return bool(data.item())
    if data.size == 0:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
    raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")


def _real(value: Any, kind: str) -> Any:
    if not isinstance(value, complex):
        return value
    if value.imag != 0:
        raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
    return value.real


@method
@shown("_local_scalar_dense")
def __float__(self: Tensor) -> float:
    return float(_real(_single(self), "double"))


@method
@shown("_local_scalar_dense")
def __int__(self: Tensor) -> int:
    return int(_real(_single(self), "int64_t"))


@method
@shown("_local_scalar_dense")
def __complex__(self: Tensor) -> complex:
    return complex(_single(self))


@method
@shown("_local_scalar_dense")
def __index__(self: Tensor) -> int:
    if self._data.size != 1 or self._data.dtype.kind not in "iub":
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(self._data.item())


@method
def __len__(self: Tensor) -> int:
    if self._data.ndim == 0:
        raise TypeError("len() of a 0-d tensor")
    return self._data.shape[0]


@method
def __format__(self: Tensor, spec: str) -> str:
    if self._data.ndim == 0 and type(self) is Tensor and not self.is_meta:  # type: ignore[attr-defined]
        return self.item().__format__(spec)  # type: ignore[attr-defined]
    return object.__format__(self, spec)
