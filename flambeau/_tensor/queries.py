"""Questions about a tensor: sizes, strides, type, memory; and its text."""

from __future__ import annotations

import builtins
from typing import Any

from flambeau._core import device as places
from flambeau._core import dtype as dt
from flambeau._core.layout import Size
from flambeau._runtime.cpu import address, element_strides
from flambeau._tensor import printing
from flambeau._tensor.conversion import numbers_of
from flambeau._tensor.examples import NO_MEMORY, Example
from flambeau._tensor.pinned_arrays import is_pinned as is_pinned_array
from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.tensor import Tensor, class_of, constructors, method, storage_of
from flambeau._tensor.type_names import NAMES as TYPE_NAMES
from flambeau._tensor.type_names import refuse_class, type_called


def _checked_dim(dim: int, ndim: int) -> int:
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], "
            f"but got {dim})"
        )
    return dim


@method
def size(self: Tensor, dim: int | None = None, *, axis: int | None = None) -> Any:
    """The shape, or the size of one dim.

    >>> import flambeau as torch
    >>> x = torch.ones(2, 3)
    >>> x.size(), x.size(-1)
    (torch.Size([2, 3]), 3)
    """
    shape = self._data.shape
    if dim is None:
        if axis is None:
            return tuple.__new__(Size, shape)
        dim = axis
    return shape[_checked_dim(dim, len(shape))]


@method
def stride(self: Tensor, dim: int | None = None, *, axis: int | None = None) -> Any:
    """Strides in elements, or the stride of one dim.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).stride(), torch.ones(2, 3).t().stride()
    ((3, 1), (1, 3))
    """
    strides = element_strides(self._data)
    if dim is None:
        if axis is None:
            return strides
        dim = axis
    return strides[_checked_dim(dim, len(strides))]


@method
def dim(self: Tensor) -> int:
    """The number of dims.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).dim()
    2
    """
    return self._data.ndim


Tensor.ndimension = dim  # type: ignore[attr-defined]


@method
def numel(self: Tensor) -> int:
    """The number of elements.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).nelement()
    6
    """
    return self._data.size


Tensor.nelement = numel  # type: ignore[attr-defined]


@method
def element_size(self: Tensor) -> int:
    """Bytes of one element.

    >>> import flambeau as torch
    >>> torch.ones(2, dtype=torch.float64).element_size()
    8
    """
    return self._data.itemsize


@method
def data_ptr(self: Tensor) -> int:
    """The address of the first element; 0 for an empty tensor.

    >>> import flambeau as torch
    >>> x = torch.ones(4)
    >>> x[1:].data_ptr() - x.data_ptr()
    4
    """
    if isinstance(self._data, Example):
        raise RuntimeError(NO_MEMORY)
    return address(self._data) if self._data.size and not self.is_meta else 0


@method
def storage_offset(self: Tensor) -> int:
    """How many elements into its storage the tensor starts.

    >>> import flambeau as torch
    >>> torch.ones(4)[1:].storage_offset()
    1
    """
    if self._root is None and self._storage is None:
        return 0
    return (address(self._data) - storage_of(self).start) // self._data.itemsize


@method
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory that this tensor shares with its views.

    >>> import flambeau as torch
    >>> x = torch.ones(4)
    >>> x.untyped_storage().nbytes(), x[:2].untyped_storage().nbytes()
    (16, 16)
    """
    return storage_of(self)


@method
def storage(self: Tensor) -> Any:
    """The same memory as a `torch.TypedStorage`, which PyTorch advises against.

    >>> import warnings
    >>> import flambeau as torch
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.ones(3).storage().size()
    3
    """
    from flambeau._tensor.typed_storage import storage_under

    return storage_under(self)


@method
def storage_type(self: Tensor) -> Any:
    """The storage class of the element type: `torch.FloatStorage` and its like.

    >>> import flambeau as torch
    >>> torch.ones(2).storage_type()
    <class 'torch.FloatStorage'>
    """
    from flambeau._tensor.typed_storage import class_under

    return class_under(self)


@method
def get_device(self: Tensor) -> int:
    """The index of the tensor's device; -1 for the CPU.

    >>> import flambeau as torch
    >>> torch.get_device(torch.ones(1))
    -1
    """
    index = self.device.index
    return -1 if index is None else index


@method
def is_floating_point(self: Tensor) -> bool:
    """Whether the type is a floating-point type.

    >>> import flambeau as torch
    >>> torch.is_floating_point(torch.tensor([1.0])), torch.is_floating_point(torch.tensor([1]))
    (True, False)
    """
    return self.dtype.is_floating_point


@method
def is_complex(self: Tensor) -> bool:
    """Whether the type is complex.

    >>> import flambeau as torch
    >>> torch.tensor([1 + 2j]).is_complex(), torch.tensor([1.0]).is_complex()
    (True, False)
    """
    return self._data.dtype.kind in "cW"


@method
def is_signed(self: Tensor) -> bool:
    """Whether the type has negative values.

    >>> import flambeau as torch
    >>> torch.is_signed(torch.ones(1)), torch.is_signed(torch.ones(1, dtype=torch.uint8))
    (True, False)
    """
    return self.dtype.is_signed


@method
def is_inference(self: Tensor) -> bool:
    """Whether the tensor, or what it is a view of, was made in inference mode.

    >>> import flambeau as torch
    >>> with torch.inference_mode():
    ...     x = torch.ones(2)
    >>> x.is_inference(), torch.ones(2).is_inference()
    (True, False)
    """
    return self._inference or (self._root is not None and self._root._inference)


@method
def is_conj(self: Tensor) -> bool:
    """Whether the conjugate bit is set: the values are the conjugates of what is in memory.

    `conj` sets it and copies nothing; `resolve_conj` writes such values out.

    >>> import flambeau as torch
    >>> x = torch.tensor([1 + 2j]).conj()
    >>> x.is_conj(), x.resolve_conj().is_conj()
    (True, False)
    """
    return self._conjugated


@method
def is_neg(self: Tensor) -> bool:
    """Whether the negative bit is set: the values are the negatives of what is in memory.

    The imaginary part of a conjugate has it; `resolve_neg` writes such values out.

    >>> import flambeau as torch
    >>> x = torch.tensor([1 + 2j]).conj().imag
    >>> x.is_neg(), x.resolve_neg().is_neg()
    (True, False)
    """
    return self._negated


@method
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether the memory is pinned for a GPU.

    >>> import flambeau as torch
    >>> torch.ones(2).is_pinned()
    False
    """
    places.look_at_pinned(device)
    return is_pinned_array(self._data)


@method
def is_shared(self: Tensor) -> bool:
    """Whether other processes see this memory: children, and those that it is sent to.

    >>> import flambeau as torch
    >>> torch.ones(2).is_shared()
    False
    """
    return self.untyped_storage().is_shared()  # type: ignore[attr-defined, no-any-return]


@method
def share_memory_(self: Tensor) -> Tensor:
    """Move the memory to where children, and processes that it is sent to, see it; same shape.

    All views of it move, too. Nothing happens if it is there, or on another device.

    >>> import flambeau as torch
    >>> torch.ones(2).share_memory_().is_shared()
    True
    """
    self.untyped_storage()  # type: ignore[attr-defined]  # there is none where tensors are sparse
    if self.device.type == "cpu":
        from flambeau._tensor.sharing import move_to_shared_memory

        move_to_shared_memory(self, finds_views=True)
    return self


@method
def _is_view(self: Tensor) -> bool:
    """Whether this tensor is a view that autograd tracks: none of an inference tensor is."""
    return self._base is not None and not is_inference(self)


@method
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both are the same elements of the same memory.

    >>> import flambeau as torch
    >>> x = torch.ones(4)
    >>> x.is_set_to(x.view(4)), x.is_set_to(x.clone())
    (True, False)
    """
    if not isinstance(tensor, Tensor):
        raise TypeError("is_set_to(): argument 'tensor' (position 1) must be Tensor, not "
                        f"{builtins.type(tensor).__name__}")  # fmt: skip
    mine, theirs = self._data, tensor._data
    if self._stored is not None or tensor._stored is not None:
        return False  # conjugate and negative views are not their memory
    same = address(mine) == address(theirs) and mine.shape == theirs.shape
    return same and mine.strides == theirs.strides and mine.dtype == theirs.dtype


@method
def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether the shapes are equal.

    >>> import flambeau as torch
    >>> x = torch.ones(2, 3)
    >>> x.is_same_size(torch.zeros(2, 3)), x.is_same_size(torch.ones(6))
    (True, False)
    """
    try:
        return self._data.shape == other._data.shape
    except AttributeError:
        if isinstance(other, Tensor):
            raise
    raise TypeError("is_same_size(): argument 'other' (position 1) must be Tensor, not "
                    f"{builtins.type(other).__name__}")  # fmt: skip


@method
def type(self: Tensor, dtype: Any = None, non_blocking: bool = False, *,
         memory_format: Any = None) -> Any:  # fmt: skip
    """The name of the tensor's type (`torch.FloatTensor`), or the tensor in another type.

    The shape stays; a tensor of that type already is returned itself.

    >>> import flambeau as torch
    >>> torch.ones(2).type()
    'torch.FloatTensor'
    >>> torch.ones(2).type(torch.int64)
    tensor([1, 1])
    """
    if non_blocking.__class__ is not bool:
        raise TypeError("type(): argument 'non_blocking' (position 2) must be bool, not "
                        f"{non_blocking.__class__.__name__}")  # fmt: skip
    if dtype is None:
        name = TYPE_NAMES[self.dtype]
        place = self.device.type
        return name if place == "cpu" else name.replace("torch.", f"torch.{place}.")
    if isinstance(dtype, str):
        dtype, place = type_called(dtype)
        if place is None and self.is_cuda:
            place = "cpu"
        if place is not None:
            return self.to(place, dtype)  # type: ignore[attr-defined]
    wanted = getattr(dtype, "place", None) or ("cpu" if hasattr(dtype, "element_type") else None)
    element = dt.Defaults.dtype if dtype is Tensor else getattr(dtype, "element_type", dtype)
    if isinstance(element, builtins.type):
        refuse_class(element)
    if not isinstance(element, dt.dtype):
        raise TypeError("dtype must be a type, str, or dtype object")
    if wanted is not None and self.device.type != wanted:
        return self.to(wanted, element, memory_format=memory_format)  # type: ignore[attr-defined]
    return self.to(element, memory_format=memory_format)  # type: ignore[attr-defined]


# ---- text


def _history_title(tensor: Tensor) -> str | None:
    try:
        node = tensor.grad_fn
    except RuntimeError:  # a view that a write has made useless
        return "Invalid"
    return None if node is None else _node_title(node)


def _tangent_text(tensor: Tensor) -> str:
    """What a dual tensor carries."""
    tangent = None if tensor._tangents is None else constructors["tangent"](tensor)
    return "" if tangent is None else f"{tangent}"


@method
def __repr__(self: Tensor, *, tensor_contents: str | None = None) -> str:
    function = getattr(self.__class__, "_prefix", None)
    prefix = f"{function or 'tensor'}("
    kind = class_of(self)
    plain = kind is Tensor or "_is_param" in kind.__dict__ or function is not None
    if not plain:
        prefix = f"{kind.__name__}("
    title = _history_title(self)
    text = printing.format_tensor(
        numbers_of(self),
        prefix=prefix,
        dtype_name=str(self.dtype),
        is_default_dtype=self.dtype in (dt.default_dtype(), dt.default_complex()),
        requires_grad=self.requires_grad,
        grad_fn_name=title,
        device_suffix=_device_text(self),
        contents="..." if self.is_meta and tensor_contents is None else tensor_contents,
        tangent=_tangent_text(self),
    )
    return f"Parameter({text})" if self._is_param and not plain else text


def _device_text(tensor: Tensor) -> str | None:
    """The device, where it is not the CPU."""
    device = tensor.device
    return None if device.type == "cpu" else f"device='{device}'"


def _node_title(node: Any) -> str:
    return str(node.name()).rpartition("::")[2]
