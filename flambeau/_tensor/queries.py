"""Questions about a tensor: sizes, strides, type, memory; and its text."""

from __future__ import annotations

import builtins
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core.layout import Size
from flambeau._runtime.cpu import address, element_strides
from flambeau._tensor import printing
from flambeau._tensor.storage import Storage
from flambeau._tensor.tensor import Tensor, method, storage_of


def _checked_dim(dim: int, ndim: int) -> int:
    length = ndim or 1
    if not -length <= dim < length:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-length}, {length - 1}], "
            f"but got {dim})"
        )
    return dim


@method
def size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or the size of one dim."""
    shape = self._data.shape
    if dim is None:
        return Size(shape)
    return shape[_checked_dim(dim, len(shape))]


@method
def stride(self: Tensor, dim: int | None = None) -> Any:
    """Strides in elements, or the stride of one dim."""
    strides = element_strides(self._data)
    if dim is None:
        return strides
    return strides[_checked_dim(dim, len(strides))]


@method
def dim(self: Tensor) -> int:
    """The number of dims."""
    return self._data.ndim


Tensor.ndimension = dim  # type: ignore[attr-defined]


@method
def numel(self: Tensor) -> int:
    """The number of elements."""
    return self._data.size


Tensor.nelement = numel  # type: ignore[attr-defined]


@method
def element_size(self: Tensor) -> int:
    """Bytes of one element."""
    return self._data.itemsize


@method
def data_ptr(self: Tensor) -> int:
    """The address of the first element; 0 for an empty tensor."""
    return address(self._data) if self._data.size else 0


@method
def storage_offset(self: Tensor) -> int:
    """How many elements into its storage the tensor starts."""
    if self._root is None and self._storage is None:
        return 0
    return (address(self._data) - storage_of(self).start) // self._data.itemsize


@method
def untyped_storage(self: Tensor) -> Storage:
    """The memory that this tensor shares with its views."""
    return storage_of(self)


@method
def storage(self: Tensor) -> Any:
    """The same memory as a `torch.TypedStorage`, which PyTorch advises against."""
    from flambeau._tensor.typed_storage import storage_under

    return storage_under(self)


@method
def storage_type(self: Tensor) -> Any:
    """The storage class of the element type: `torch.FloatStorage` and its like."""
    from flambeau._tensor.typed_storage import class_under

    return class_under(self)


@method
def get_device(self: Tensor) -> int:
    """The index of the tensor's device; -1 for the CPU."""
    return -1


@method
def is_floating_point(self: Tensor) -> bool:
    """Whether the type is a floating-point type."""
    return self.dtype.is_floating_point


@method
def is_complex(self: Tensor) -> bool:
    """Whether the type is complex."""
    return self._data.dtype.kind == "c"


@method
def is_signed(self: Tensor) -> bool:
    """Whether the type has negative values."""
    return self.dtype.is_signed


@method
def is_inference(self: Tensor) -> bool:
    """Whether the tensor, or what it is a view of, was made in inference mode."""
    return self._inference or (self._root is not None and self._root._inference)


@method
def is_conj(self: Tensor) -> bool:
    """Whether the conjugate bit is set: never, conjugates are computed at once."""
    return False


Tensor.is_neg = is_conj  # type: ignore[attr-defined]


@method
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether the memory is pinned for a GPU."""
    return False


@method
def is_shared(self: Tensor) -> bool:
    """Whether other processes see this memory."""
    return False


@method
def _is_view(self: Tensor) -> bool:
    """Whether this tensor is a view that autograd tracks."""
    return self._base is not None


@method
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both are the same elements of the same memory."""
    mine, theirs = self._data, tensor._data
    same = address(mine) == address(theirs) and mine.shape == theirs.shape
    return same and mine.strides == theirs.strides and mine.dtype == theirs.dtype


@method
def has_names(self: Tensor) -> bool:
    """Whether dims are named: never."""
    return False


@method
def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether the shapes are equal."""
    return self._data.shape == other._data.shape


TYPE_NAMES = {entry: f"torch.{entry.scalar_name}Tensor" for entry in dt.ALL}


@method
def type(self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """The name of the tensor's type (`torch.FloatTensor`), or the tensor in another type."""
    if dtype is None:
        return TYPE_NAMES[self.dtype]
    if isinstance(dtype, str):
        found = [entry for entry, name in TYPE_NAMES.items() if name == dtype]
        if not found:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = found[0]
    elif dtype in dt.PYTHON_TYPES:
        raise ValueError(f"invalid type: '{dtype.__name__}'")
    element = getattr(dtype, "element_type", dtype)
    if not isinstance(element, (dt.dtype, builtins.type)):
        raise TypeError("dtype must be a type, str, or dtype object")
    return self.to(element)  # type: ignore[attr-defined]


# ---- text


def _history_title(tensor: Tensor) -> str | None:
    try:
        node = tensor.grad_fn
    except RuntimeError:  # a view that a write has made useless
        return "Invalid"
    return None if node is None else _node_title(node)


@method
def __repr__(self: Tensor, *, tensor_contents: str | None = None) -> str:
    function = getattr(self.__class__, "_prefix", None)
    prefix = f"{function or 'tensor'}("
    marked = "_is_param" in self.__dict__  # a Parameter of the user's subclass
    if self.__class__ is not Tensor and (marked or not self._is_param) and function is None:
        prefix = f"{self.__class__.__name__}("
    title = _history_title(self)
    return printing.format_tensor(
        self._data,
        prefix=prefix,
        dtype_name=str(self.dtype),
        is_default_dtype=self.dtype in (dt.default_dtype(), dt.default_complex()),
        requires_grad=self.requires_grad,
        grad_fn_name=title,
        device_suffix=_device_text(self),
        contents=tensor_contents,
    )


Tensor.__str__ = __repr__  # type: ignore[assignment]


def _device_text(tensor: Tensor) -> str | None:
    """The device, where it is not the CPU."""
    device = tensor.device
    return None if device.type == "cpu" else f"device='{device}'"


def _node_title(node: Any) -> str:
    return str(node.name()).rpartition("::")[2]
