"""Methods of tensors that have a conjugate or negative bit, where Tensor's are no rows: those that
ask about memory, those that write, those that make views, and ways to other libraries and files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core import modes
from flambeau._core.layout import contiguous_format, preserve_format
from flambeau._ops.table.namespace import ops
from flambeau._tensor.bits import (
    BitTensor,
    among,
    method_of_bits,
    on_memory,
    resolved,
    set_bits,
    share,
)
from flambeau._tensor.tensor import Tensor, class_of, new, storage_of

TENSOR: Any = Tensor
"""Its methods, of which type checkers do not know."""


ABOUT_MEMORY = (
    "_is_view", "data_ptr", "dim", "dim_order", "element_size", "is_complex", "is_contiguous",
    "is_floating_point", "is_same_size", "is_set_to", "is_signed", "is_shared", "ndimension",
    "nelement", "numel", "size", "storage", "storage_offset", "storage_type", "stride",
    "untyped_storage",
)  # fmt: skip
"""Methods that ask about the memory alone."""


def _of_memory(name: str) -> None:
    def function(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        with on_memory([self, *among(args)]):
            return getattr(TENSOR, name)(self, *args, **kwargs)

    method_of_bits(name)(function)


for _name in ABOUT_MEMORY:
    _of_memory(_name)


@method_of_bits("contiguous")
def _contiguous(self: Any, memory_format: Any = contiguous_format) -> Any:
    if self.is_contiguous(memory_format=memory_format):
        return self
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return ops.clone(self, memory_format=memory_format)


def _refuse_numpy(tensor: Tensor) -> None:
    for word, name, is_set in (("conjugate", "conj", tensor._conjugated),
                               ("negative", "neg", tensor._negated)):  # fmt: skip
        if is_set:
            raise RuntimeError(f"Can't call numpy() on Tensor that has {word} bit set. Use "
                               f"tensor.resolve_{name}().numpy() instead.")  # fmt: skip


@method_of_bits("numpy")
def _numpy(self: Tensor, *, force: bool = False) -> Any:
    if force:
        return resolved(self)
    if not (self.requires_grad and modes.grad.enabled):
        _refuse_numpy(self)
    return TENSOR.numpy(self)


@method_of_bits("__array__")
def _array(self: Tensor, dtype: Any = None, copy: Any = None) -> Any:
    if not (self.requires_grad and modes.grad.enabled):
        _refuse_numpy(self)
    return TENSOR.__array__(self, dtype)


@method_of_bits("__dlpack__")
def _dlpack(self: Tensor, **asked: Any) -> Any:
    if self._conjugated and not self.requires_grad:
        raise BufferError("Can't export tensors with the conjugate bit set")
    with on_memory([self]):
        return TENSOR.__dlpack__(self, **asked)


@method_of_bits("__deepcopy__")
def _deep_copy(self: Any, memo: dict[int, Any]) -> Any:
    """A copy of the values, in memory of its own."""
    if self._node is not None:
        return TENSOR.__deepcopy__(self, memo)  # which refuses
    if id(self) not in memo:
        copied = ops.clone(self.detach()).as_subclass(class_of(self))
        memo[id(self)] = copied.requires_grad_(self.requires_grad)
    return memo[id(self)]


@method_of_bits("__reduce_ex__")
def _reduce(self: Tensor, protocol: Any) -> Any:
    with on_memory([self]):
        found: Any = TENSOR.__reduce_ex__(self, protocol)
    function, (memory, place, requires_grad, _, *rest) = found
    arguments = (memory, place, requires_grad, class_of(self), *rest)
    return rebuild_with_bits, (function, arguments, self._conjugated, self._negated)


def rebuild_with_bits(
    function: Callable[..., Tensor], arguments: Any, conjugated: bool, negated: bool
) -> Any:
    """Pickle's way back to a tensor with a bit."""
    return set_bits(function(*arguments), conjugated, negated)


def _data_alias(self: Tensor) -> Any:
    """The same memory, bits included, without history and with a version count of its own."""
    result: Any = new(class_of(self)) if self._is_param is False else new(Tensor)
    share(self, result)
    result._storage = storage_of(self)
    return result


BitTensor.data = property(_data_alias, TENSOR.data.fset, TENSOR.data.fdel)  # type: ignore[assignment,method-assign]
