"""Small methods of Tensor: `type_as`, `apply_`, `dim_order`, `as_subclass`, and other devices' and
layouts' methods, which answer for a dense tensor on the CPU.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from operator import index
from typing import Any, NoReturn

import numpy as np

from flambeau._core import layout as lay
from flambeau._core.device import NOT_COMPILED, check_pin
from flambeau._core.doc_text import with_example
from flambeau._ops.table.binder import require_tensor
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite
from flambeau._runtime.cpu import element_strides
from flambeau._tensor import overriding
from flambeau._tensor.attributes import fields_of
from flambeau._tensor.bits import set_bits, writes
from flambeau._tensor.device_array import block_of
from flambeau._tensor.pinned_arrays import is_pinned, pinned_copy
from flambeau._tensor.tensor import Tensor, memory_of, method, new, provides, wrap
from flambeau._tensor.with_entries import also_by_class, title
from flambeau.autograd.history import bump, check_inplace, view_of


@composite(
    "type_as(Tensor self, Tensor other) -> Tensor",
    regular=True,
    may_give_input=True,
    bare=True,
    function=False,
)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor in another tensor's type and on its device; itself if it has both already.

    The shape stays.

    >>> import flambeau as torch
    >>> torch.ones(2).type_as(torch.tensor([1]))
    tensor([1, 1])
    """
    require_tensor("type_as", "other", 1, other)
    return input.to(other)  # type: ignore[attr-defined, no-any-return]


@method
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """A copy in memory pinned for a GPU, of the same shape; the tensor itself if it is there.

    Copies from pinned memory to the GPU run beside the program (`non_blocking=True`). Raises
    RuntimeError without a GPU.

    >>> import flambeau as torch
    >>> x = torch.ones(2)
    >>> x = x.pin_memory() if torch.cuda.is_available() else x
    >>> x.is_pinned() == torch.cuda.is_available()
    True
    """
    if self.is_cuda:
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")  # type: ignore[attr-defined]
    if self.is_meta:
        raise RuntimeError(f"cannot pin 'Meta{self.dtype.scalar_name}Type' only dense CPU tensors "
                           "can be pinned")  # fmt: skip
    check_pin(device)
    return self if is_pinned(self._data) else wrap(pinned_copy(self._data))


@method
def record_stream(self: Tensor, s: Any) -> None:
    """Keep the memory from being reused, when it is given back, until the work that is then in a
    stream of the GPU is done.

    For a tensor of any shape on a GPU that a stream other than its own uses. Raises
    NotImplementedError for a tensor on the CPU.

    >>> import flambeau as torch
    >>> if torch.cuda.is_available():
    ...     stream = torch.cuda.Stream()
    ...     x = torch.ones(2, device="cuda")
    ...     with torch.cuda.stream(stream):
    ...         y = x + 1
    ...     x.record_stream(stream)
    """
    if not self.is_cuda:
        raise NotImplementedError(
            "Could not run 'aten::record_stream' with arguments from the 'CPU' backend."
        )
    data: Any = self._data
    block_of(data).record_stream(s.cuda_stream)


# ---- a Python function for every element


def _refuse_grad(name: str, *tensors: Tensor) -> None:
    if any(tensor.requires_grad for tensor in tensors):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. "
                           f"Use var.detach().{name}() instead.")  # fmt: skip


def _checked_other(name: str, word: str, self: Tensor, other: Any, position: int) -> np.ndarray:
    require_tensor(name, word, position, other)
    _refuse_grad(name, self, other)
    if other.dtype is not self.dtype:
        raise TypeError(f"{name}: expected {self.type()} for '{word}' (got {other.type()})")
    return ops.expand(other.detach(), self.shape)._data  # type: ignore[no-any-return]


def _as_integer(value: Any) -> int:
    return int(value) if isinstance(value, float) else index(value)


@writes
def _write_each(tensor: Tensor, function: Callable[..., Any], operands: list[np.ndarray]) -> Tensor:
    check_inplace(tensor, recorded=False)
    data = tensor._data
    for place in np.ndindex(data.shape):
        value = function(*(operand[place].item() for operand in operands))
        data[place] = _as_integer(value) if data.dtype.kind in "iu" else value
    bump(tensor)
    return tensor


@method
def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What `load_state_dict` makes of this parameter where it swaps: see `torch.__future__`.

    `other` itself with `assign`, else this tensor after the numbers of `other`, of the same shape,
    were copied to it; detached in both cases.

    >>> import flambeau as torch
    >>> torch.zeros(2).module_load(torch.ones(2))
    tensor([1., 1.])
    """
    return other.detach() if assign else self.copy_(other).detach()  # type: ignore[attr-defined]


@method
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace every element by what a Python function of one number makes of it; the shape stays.

    Slow, for the function runs once for each element. Only on the CPU.

    >>> import flambeau as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> x.apply_(lambda value: value * 10)
    tensor([10., 20.])
    """
    _refuse_grad("apply_", self)
    return _write_each(self, callable, [self._data])


@method
def map_(self: Tensor, other: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace every element by what a function makes of it and of another tensor's element.

    The other tensor's shape broadcasts to that of this one. Slow: it runs once for each element.

    >>> import flambeau as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> x.map_(torch.tensor([10.0, 20.0]), lambda a, b: a + b)
    tensor([11., 22.])
    """
    _refuse_grad("map_", self)
    second = _checked_other("map_", "other", self, other, 1)
    return _write_each(self, callable, [self._data, second])


@method
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Replace every element by what a function makes of it and of elements of two other tensors.

    Their shapes broadcast to that of this one. Slow: the function runs once for each element.

    >>> import flambeau as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> x.map2_(torch.tensor([3.0, 4.0]), torch.tensor([10.0, 20.0]), lambda a, b, c: a * b + c)
    tensor([13., 28.])
    """
    _refuse_grad("map2_", self)
    first = _checked_other("map2_", "x", self, x, 1)
    second = _checked_other("map2_", "y", self, y, 2)
    return _write_each(self, callable, [self._data, first, second])


# ---- what the tensor is


@method
def const_data_ptr(self: Tensor) -> int:
    """The address of the first element, for reading.

    >>> import flambeau as torch
    >>> x = torch.ones(4)
    >>> x.const_data_ptr() == x.data_ptr()
    True
    """
    return self.data_ptr()  # type: ignore[no-any-return]


@method
def dim_order(self: Tensor, *, ambiguity_check: bool | list[Any] = False) -> tuple[int, ...]:
    """The dims from the largest stride to the smallest: how the elements lie in memory.

    Raises:
        RuntimeError: sizes and strides fit several orders, and `ambiguity_check` is True.
        TypeError: `ambiguity_check` is neither a bool nor a list of memory formats.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).dim_order(), torch.ones(2, 3).t().dim_order()
    ((0, 1), (1, 0))
    """
    _check_ambiguity(self, ambiguity_check)
    dims = list(range(self._data.ndim))
    rows, images = self.is_contiguous(), self.is_contiguous(memory_format=lay.channels_last)
    if rows != images:
        return tuple(dims) if rows else (0, 2, 3, 1)
    strides, shape = element_strides(self._data), self._data.shape
    inwards = dims[::-1]  # from the smallest stride to the largest
    for last in dims[1:]:
        _settle(inwards, last, strides, shape)
    return tuple(reversed(inwards))


def _settle(order: list[int], last: int, strides: Any, shape: Any) -> None:
    """Bring the dim at a place inwards, past those that lie further out, by exchanges.

    Dims of stride 0 lie nowhere: they are passed over. Of equal strides, the larger dim lies
    further out.
    """
    for position in range(last - 1, -1, -1):
        dim, other = order[last], order[position]
        if strides[other] == 0 or strides[dim] == 0:
            continue
        if strides[other] < strides[dim]:
            return
        if (strides[other], shape[other]) > (strides[dim], shape[dim]):
            order[position], order[last] = dim, other
            last = position


def _check_ambiguity(tensor: Tensor, check: Any) -> None:
    formats = check if isinstance(check, list) else []
    if not isinstance(check, bool) and not (
        isinstance(check, list) and all(isinstance(f, lay.memory_format) for f in formats)
    ):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if check is False or any(tensor.is_contiguous(memory_format=f) for f in formats):
        return
    if formats or _has_several_orders(tensor):
        raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one "
                           "of the given memory formats.")  # fmt: skip


def _has_several_orders(tensor: Tensor) -> bool:
    strides = element_strides(tensor._data)
    return len(set(strides)) < len(strides) or 1 in tensor._data.shape or 0 in strides


@method
def as_subclass(self: Tensor, cls: Any) -> Any:
    """A tensor of a subclass with the same shape, memory and history.

    Raises:
        TypeError: `cls` is no subclass of Tensor.

    >>> import flambeau as torch
    >>> class Named(torch.Tensor):
    ...     pass
    >>> type(torch.ones(2).as_subclass(Named)).__name__
    'Named'
    """
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError("Creating a Tensor subclass from a class that does not inherit from Tensor "
                        "is not possible. Make sure your class inherits from Tensor.")  # fmt: skip
    with overriding.off():
        result: Any = ops.alias(self) if self.requires_grad else view_of(self, memory_of(self))
    return of_class(result, cls)


@provides("of_class")
def of_class(tensor: Any, cls: Any) -> Any:
    """A new tensor as one of a subclass; it keeps its memory, history and bits."""
    bits = tensor._conjugated, tensor._negated
    return set_bits(set_class(set_bits(tensor, False, False), cls), *bits)


def set_class(tensor: Any, cls: Any) -> Any:
    """A new tensor as one of a subclass."""
    if hasattr(cls, "__torch_dispatch__"):
        from flambeau._tensor.wrappers import note

        return note(_with_class(tensor, cls))
    return _with_class(tensor, cls)


def _with_class(tensor: Any, cls: Any) -> Any:
    try:
        tensor.__class__ = cls
    except TypeError:  # a class with slots
        made: Any = new(cls)
        fields_of(made).update(fields_of(tensor))
        return made
    return tensor


@method
def is_distributed(self: Tensor) -> bool:
    """Whether the tensor is spread over machines: never.

    >>> import flambeau as torch
    >>> torch.is_distributed(torch.ones(1))
    False
    """
    return False


def _volatile(self: Tensor) -> bool:
    """Always False, with a warning: autograd has no such mode any more.

    >>> import warnings
    >>> import flambeau as torch
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.ones(2).volatile
    False
    """
    warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=2)
    return False


Tensor.volatile = property(_volatile)  # type: ignore[attr-defined]


# ---- other layouts: every tensor is dense


@method
@also_by_class
def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """This tensor, which is dense already; a sparse tensor becomes a dense one of the same shape.

    `masked_grad` is about sparse ones.

    >>> import flambeau as torch
    >>> torch.ones(2).to_dense()
    tensor([1., 1.])
    """
    return self if dtype is None else self.to(dtype)


@method
@also_by_class
def dense_dim(self: Tensor) -> int:
    """The number of dense dims: all.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).dense_dim()
    2
    """
    return self._data.ndim


@method
@also_by_class
def sparse_dim(self: Tensor) -> int:
    """The number of sparse dims: 0.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).sparse_dim()
    0
    """
    return 0


SPARSE_ONLY = {
    "coalesce": ("sparse coordinate tensor",
                 "The tensor with each place once, in order; values of one place are added up"),
    "indices": ("sparse coordinate tensor", "The places of the entries, of shape (dims, entries)"),
    "is_coalesced": ("sparse coordinate tensor", "Whether each place is there once, in order"),
    "values": ("sparse tensor", "The values of the entries, of shape (entries, *dense dims)"),
    "crow_indices": ("sparse row compressed tensor",
                     "Where the entries of each row begin, of shape (rows + 1,)"),
    "col_indices": ("sparse row compressed tensor",
                    "The column of each entry, of shape (entries,)"),
    "ccol_indices": ("sparse column compressed tensor",
                     "Where the entries of each column begin, of shape (columns + 1,)"),
    "row_indices": ("sparse column compressed tensor",
                    "The row of each entry, of shape (entries,)"),
}  # fmt: skip
"""Methods that only sparse tensors answer: the layout that torch's error asks for, the answer."""


def _only_sparse(name: str, wanted: str, answer: str) -> None:
    def refuse(self: Tensor) -> NoReturn:
        raise RuntimeError(f"{name} expected {wanted} layout but got {title(self.layout)}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = with_example(
        f"{answer}.\n\nOnly for a {wanted}: this one is not, and raises RuntimeError.",
        f"try:\n...     torch.ones(2).{name}()\n"
        "... except RuntimeError as error:\n...     print(error)",
        f"{name} expected {wanted} layout but got Strided",
    )
    method(also_by_class(refuse))


for _name, _words in SPARSE_ONLY.items():
    _only_sparse(_name, *_words)


# ---- other devices


@method
def xpu(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """The tensor on a GPU of Intel's. Raises AssertionError: there is none."""
    raise AssertionError(NOT_COMPILED["xpu"])


@method
def ipu(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """The tensor on an IPU. Raises RuntimeError: there is none."""
    raise RuntimeError("PyTorch is not linked with support for ipu devices")


@method
def mtia(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """The tensor on an accelerator of Meta's. Raises AssertionError: there is none."""
    raise AssertionError(NOT_COMPILED["mtia"])
