"""Parameters and buffers: tensors that a Module registers when they are assigned to it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._core.device import Defaults, check_available, prepare
from flambeau._core.layout import preserve_format
from flambeau._ops.factories.making import memory, shape_of, untouched
from flambeau._ops.table.namespace import ops
from flambeau._tensor import overriding
from flambeau._tensor.bits import share
from flambeau._tensor.tensor import (
    Tensor,
    _TensorMeta,
    class_of,
    memory_of,
    new,
    placed,
    storage_of,
    wrap,
)
from flambeau.autograd.versions import share_count
from flambeau.nn.uninitialized import (
    CANNOT_REQUIRE_GRAD,
    UninitializedTensorMixin,
    is_lazy,
    make_uninitialized,
)

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


class _ParameterMeta(_TensorMeta):
    """Tensors of user's subclasses count as Parameters once they are marked `_is_param`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and bool(instance._is_param)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor to be trained: assigned to a Module, it appears among its `parameters()`.

    Args:
        data: the tensor whose memory the parameter takes; an empty one by default.
        requires_grad: whether gradients are wanted.

    Raises:
        RuntimeError: `requires_grad` with a dtype that is neither floating point nor complex.

    >>> import flambeau as torch
    >>> torch.nn.Parameter(torch.zeros(2)).requires_grad
    True
    """

    _is_param = True
    __torch_function__ = staticmethod(overriding.disabled)

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = ops.empty(0)
        if class_of(data) is Tensor or isinstance(data, Parameter):
            held = sys.getrefcount(data) > Holders.usual
            return _as_parameter(cls, data, requires_grad, held)
        # A user's subclass stays what it is and is marked.
        marked = data.detach().requires_grad_(requires_grad)
        marked._is_param = True
        return marked  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        known = memo.get(id(self))
        if known is None:
            copied = ops.clone(self.data, memory_format=preserve_format)
            known = memo[id(self)] = type(self)(copied, self.requires_grad)
        return known  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    __str__ = __repr__

    def __reduce_ex__(self, protocol: Any) -> Any:
        own = {key: value for key, value in vars(self).items() if not hasattr(Tensor, key)}
        return rebuild_parameter, (type(self), self.data, self.requires_grad, own)


class Holders:
    """How many hold the tensor that a parameter is made of if one variable outside does. Views and
    aliases of it hold it, too."""

    usual = 2**31  # until it is known: it depends on the interpreter

    @staticmethod
    def count() -> None:
        """Find out."""
        data = wrap(np.empty(0, np.float32))
        Holders.usual = 0
        while Parameter(data)._root is data:
            data._root = None
            Holders.usual += 1


def _as_parameter(cls: Any, data: Tensor, requires_grad: bool, held: bool = False) -> Parameter:
    result = new(cls)
    share(data, result)
    result._storage = storage_of(data)
    share_count(data, result, held=held)
    if data._inference:
        result._inference = True
    if requires_grad:
        if memory_of(data).dtype not in GRAD_DTYPES:
            raise RuntimeError(CANNOT_REQUIRE_GRAD)
        result._requires_grad = True
    return result  # type: ignore[no-any-return]


GRAD_DTYPES = frozenset(
    entry.numpy_dtype for entry in dt.ALL if entry.is_floating_point or entry.is_complex
)


def rebuild_parameter(
    cls: Any, data: Tensor, requires_grad: bool, attributes: dict[str, Any]
) -> Parameter:
    """The other half of pickling a parameter; memory is shared with `data`."""
    result = _as_parameter(cls, data, requires_grad)
    vars(result).update(attributes)
    return result


def empty_parameter(shape: tuple[int, ...], dtype: Any, device: Any) -> Parameter:
    """A trainable parameter over memory that the caller fills."""
    if modes.stacks.dispatch_modes:  # who wants to see it
        return Parameter(ops.empty(shape, dtype=dtype, device=device))
    prepare(device)
    shape = shape_of((shape,), "empty")
    numpy_dtype = dt.Defaults.numpy_dtype if dtype is None else dt.as_dtype(dtype).numpy_dtype
    if numpy_dtype not in GRAD_DTYPES:
        raise RuntimeError(CANNOT_REQUIRE_GRAD)
    result = new(Parameter)
    data = untouched(memory(shape, numpy_dtype))
    result._data = placed(data) if Defaults.elsewhere else data
    result._requires_grad = True
    if modes.grad.inference:
        result._inference = True
    return result  # type: ignore[no-any-return]


class _BufferMeta(_TensorMeta):
    """Buffers are plain tensors with a mark."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is not Buffer:
            return type.__instancecheck__(cls, instance)
        return isinstance(instance, Tensor) and "_is_buffer" in vars(instance)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that belongs to a Module's state but is not trained, such as a running mean.

    `persistent=False` leaves it out of the `state_dict`.

    >>> import flambeau as torch
    >>> class Mean(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.mean = torch.nn.Buffer(torch.zeros(3))
    >>> Mean().state_dict()
    OrderedDict([('mean', tensor([0., 0., 0.]))])
    """

    __torch_function__ = staticmethod(overriding.disabled)

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Tensor:  # type: ignore[misc]
        if data is None:
            data = ops.empty(0)
        result = data.detach().requires_grad_(data.requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result  # type: ignore[no-any-return]


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[override]
    """A Parameter of a lazy module before the first batch has told its shape.

    >>> import flambeau as torch
    >>> layer = torch.nn.LazyLinear(2)
    >>> isinstance(layer.weight, torch.nn.UninitializedParameter)
    True
    >>> _ = layer(torch.ones(1, 3))
    >>> layer.weight.shape
    torch.Size([2, 3])
    """

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        check_available(device)
        return make_uninitialized(cls, requires_grad, dtype or dt.default_dtype())  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        known = memo.get(id(self))
        if known is None:
            known = memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return known  # type: ignore[no-any-return]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[override]
    """A buffer of a lazy module before the first batch has told its shape.

    >>> import flambeau as torch
    >>> torch.nn.parameter.is_lazy(torch.nn.LazyBatchNorm1d().running_mean)
    True
    """

    cls_to_become = Tensor
    __torch_function__ = staticmethod(overriding.disabled)

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        check_available(device)
        result = make_uninitialized(cls, requires_grad, dtype or dt.default_dtype())
        result.persistent = persistent
        result._is_buffer = True
        return result  # type: ignore[no-any-return]


Holders.count()
