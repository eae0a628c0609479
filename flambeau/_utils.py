"""`torch._utils`: what libraries take from PyTorch's file of small helpers."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, NoReturn

from flambeau._core.device import device as Device
from flambeau._core.missing import lazily
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor

ExcInfo = tuple[type[BaseException] | None, BaseException | None, TracebackType | None]


class KeyErrorMessage(str):
    """A text that is shown as it is: `repr` of a KeyError's text would hide its lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception of another thread or process, as text, to be raised here.

    Args:
        exc_info: as `sys.exc_info()` gives it, which is what is left out stands for.
        where: where it happened, for the message.
    """

    def __init__(self, exc_info: ExcInfo | None = None, where: str = "in background") -> None:
        kind, error, place = sys.exc_info() if exc_info is None else exc_info
        self.exc_type = kind
        self.exc_msg = "".join(traceback.format_exception(kind, error, place))
        self.where = where

    def reraise(self) -> NoReturn:
        """Raise an exception of the same class, whose message shows where the first one was."""
        kind = self.exc_type
        if kind is None:
            raise RuntimeError(f"no exception was caught {self.where}")
        words = f"Caught {kind.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if kind is KeyError:
            raise KeyError(KeyErrorMessage(words))
        try:
            error = kind(words)
        except Exception:  # noqa: BLE001  its constructor takes other arguments
            raise RuntimeError(words) from None
        raise error


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of all tensors, one after the other: in new memory, unless it is one alone."""
    if len(tensors) == 1:
        return ops.reshape(tensors[0], (-1,))  # type: ignore[no-any-return]
    return ops.cat([ops.reshape(tensor, (-1,)) for tensor in tensors])  # type: ignore[no-any-return]


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of a flat tensor with the shapes of others, one after the other."""
    views, start = [], 0
    for tensor in tensors:
        count = tensor._data.size
        views.append(ops.narrow(flat, 0, start, count).view(tensor.shape))
        start += count
    return tuple(views)


def _rebuild_tensor(
    storage: Any, storage_offset: int, size: Sequence[int], stride: Sequence[int]
) -> Tensor:
    """The tensor of these sizes and strides over a typed storage."""
    result = ops.empty(0, dtype=storage.dtype)
    return result.set_(storage._untyped_storage, storage_offset, size, stride)  # type: ignore[no-any-return]


def _rebuild_tensor_v2(storage: Any, storage_offset: int, size: Sequence[int],
                       stride: Sequence[int], requires_grad: bool, backward_hooks: Any,
                       metadata: Any = None) -> Tensor:  # fmt: skip
    """The same, a leaf that learns if it did, with its hooks."""
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    tensor.requires_grad = requires_grad
    for hook in (backward_hooks or {}).values():
        tensor.register_hook(hook)  # type: ignore[attr-defined]
    return tensor


def _element_size(dtype: Any) -> int:
    """The bytes of an element."""
    return dtype.itemsize  # type: ignore[no-any-return]


def _is_privateuse1_backend_available() -> bool:
    """Whether a device from outside is registered: there are none."""
    return False


def _get_available_device_type() -> str | None:
    """The kind of accelerator that there is; None without one."""
    return "cuda" if _device_module("cuda").is_available() else None


def _get_device_module(device_type: str) -> Any:
    """The module of a kind of device: `torch.cpu` for "cpu".

    Raises:
        RuntimeError: there is none.
    """
    try:
        return _device_module(device_type)
    except ImportError:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as "
            f"'torch.{device_type}'."
        ) from None


def get_device_module(device: Any = None) -> Any:
    """The module of a device's kind, such as `torch.cuda`; without one, of the accelerator (or
    `torch.cpu`, where there is none).

    Raises:
        RuntimeError: there is no such module, or `device` is no device.

    >>> import flambeau as torch
    >>> torch.get_device_module("cuda:1") is torch.cuda
    True
    """
    if device is None:
        kind = _get_available_device_type() or "cpu"
    elif isinstance(device, str | Device):
        kind = Device(device).type
    else:
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    return _get_device_module(kind)


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int | None:
    """The index that a device or its name has; of the CPU -1. Numbers are indices.

    Raises:
        ValueError: it has none (not with `optional`), or is the CPU (not with `allow_cpu`).
    """
    index = device if isinstance(device, int) else None
    if isinstance(device, str | Device):
        place = Device(device)
        if place.type == "cpu":
            if allow_cpu:
                return -1
            raise ValueError(f"Expected a non cpu device, but got: {place}")
        index = place.index
    if index is None and not optional:
        raise ValueError(
            f"Expected a torch.device with a specified index or an integer, but got:{device}"
        )
    return index


def _take_tensors(tensors: Sequence[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Groups of tensors of one type, each of up to `size_limit` bytes or of one tensor."""
    open_groups: dict[str, tuple[list[Tensor], int]] = {}
    for tensor in tensors:
        kind, size = tensor.type(), _bytes_of(tensor)  # type: ignore[attr-defined]
        group, total = open_groups.get(kind, ([], 0))
        if group and total + size > size_limit:
            yield group
            group, total = [], 0
        open_groups[kind] = ([*group, tensor], total + size)
    yield from (group for group, _ in open_groups.values())


def _bytes_of(tensor: Any) -> int:
    parts = (tensor._indices(), tensor._values()) if tensor.is_sparse else (tensor,)
    return sum(part.numel() * part.element_size() for part in parts)


def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
    """Whether `input.data = from_` can be: both dense, or of one layout that is sparse.

    >>> import flambeau as torch
    >>> torch._has_compatible_shallow_copy_type(torch.ones(2), torch.ones(3, device="meta"))
    True
    """
    for place, tensor in enumerate((input, from_), 1):
        if not isinstance(tensor, Tensor):
            name = ("input", "from")[place - 1]
            raise TypeError(
                f"_has_compatible_shallow_copy_type(): argument '{name}' (position {place}) must "
                f"be Tensor, not {type(tensor).__name__}"
            )
    mine, theirs = (
        "compressed" if str(t.layout) in COMPRESSED else str(t.layout) for t in (input, from_)
    )
    return mine == theirs


COMPRESSED = ("torch.sparse_csr", "torch.sparse_csc", "torch.sparse_bsr", "torch.sparse_bsc")


def _device_module(device_type: str) -> Any:
    return importlib.import_module(f"{__package__}.{device_type}")


__getattr__ = lazily(__name__)
