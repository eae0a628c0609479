"""What parameters and buffers without a shape let pass: conversions, and questions that need none.

Everything else raises ValueError and names what was called. A method of Tensor meets its refusal
on the class itself; a function of torch meets it where it asks for the memory.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, NoReturn

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.device import CPU, device
from flambeau._core.layout import Size
from flambeau._core.missing import MissingAttribute
from flambeau._ops.table.namespace import ops
from flambeau._tensor.bits import share
from flambeau._tensor.method_names import IN_PYTHON
from flambeau._tensor.overriding import CALLED, IGNORED
from flambeau._tensor.tensor import Tensor, new, wrap

CANNOT_REQUIRE_GRAD = "Only Tensors of floating point and complex dtype can require gradients"
NO_SHAPE = (
    "Can't access the shape of an uninitialized parameter or buffer. This error usually happens "
    "in `load_state_dict` when trying to load an uninitialized parameter into an initialized one. "
    "Call `forward` to initialize the parameters before accessing their attributes."
)
NO_USE = (
    "Attempted to use an uninitialized parameter in {}. This error happens when you are using a "
    "`LazyModule` or explicitly manipulating `torch.nn.parameter.{}` objects. When using "
    "LazyModules Call `forward` with a dummy batch to initialize the parameters before calling "
    "torch functions"
)
NO_SHARING = (
    "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the "
    "parameters before calling `module.share_memory()`."
)
PASSING = frozenset(
    "size is_complex is_floating_point half float double char short int long cuda cpu to "
    "get_device".split()
)
"""Methods that work as on an empty tensor."""
OF_AUTOGRAD = frozenset(
    "data grad grad_fn requires_grad is_leaf retains_grad shape dtype device _version _grad _base "
    "output_nr name volatile grad_dtype".split()
)
"""Properties that ask for no memory, or that stand below."""
RENAMED = {
    "__iter__": "dim", "ndimension": "dim", "nelement": "numel", "to_sparse_coo": "to_sparse",
}  # fmt: skip
"""Methods that call another one."""


def _printed(name: str) -> str:
    """A method of Tensor as torch prints it."""
    name = "__rdiv__" if name == "__rtruediv__" else name
    if name in IN_PYTHON:
        return f"<function Tensor.{name} at {id(name):#x}>"
    if name in ("__pow__", "__ipow__"):
        called = name.strip("_").replace("ipow", "pow_")
        return f"<function TensorBase.{called} at {id(name):#x}>"
    kind = "slot wrapper" if name in ("__getitem__", "__setitem__") else "method"
    called = RENAMED.get(name) or CALLED.get(name, name)
    return f"<{kind} '{called}' of 'torch._C.TensorBase' objects>"


def refuse(what: str, kind: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise the ValueError about a use without a shape."""
    raise ValueError(NO_USE.format(what, kind))


class Refused:
    """Stands for a method of Tensor that needs memory."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return getattr(Tensor, self.name)
        return partial(refuse, _printed(self.name), type(instance).__name__)


class Passing:
    """Stands for a method or property that is answered by an empty tensor."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return getattr(Tensor, self.name)
        empty = _empty(instance)
        found = getattr(empty, self.name)
        return partial(_answer, instance, empty, found) if callable(found) else found


def _empty(instance: Any) -> Tensor:
    empty = instance.data
    if instance._requires_grad:
        empty._requires_grad = True
    return empty


def _answer(instance: Any, empty: Tensor, method: Any, *args: Any, **kwargs: Any) -> Any:
    """What an empty tensor answers, with the instance itself where it gives itself.

    Tensors are of the class of a buffer; a parameter's are plain.
    """
    result = method(*args, **kwargs)
    if result is empty:
        return instance
    if not isinstance(result, Tensor) or instance._is_param:
        return result
    return make_uninitialized(type(instance), False, result.dtype)


class UninitializedTensorMixin:
    """A parameter or buffer whose shape is not known yet: it has a dtype and no memory."""

    _lazy_dtype: dt.dtype
    _requires_grad: bool
    _grad: Tensor | None
    cls_to_become: type
    is_complete = False

    @property
    def _data(self) -> Any:
        frame: Any = sys._getframe(1)
        while frame.f_code.co_name.startswith("_") or frame.f_code is share.__code__:
            if frame.f_code.co_name == "__new__":  # Parameter(uninitialized)
                refuse(_printed("detach"), type(self).__name__)
            frame = frame.f_back
        name = frame.f_code.co_name
        refuse(f"<built-in method {name} of type object at {id(Tensor):#x}>", type(self).__name__)

    @property
    def dtype(self) -> dt.dtype:
        """The element type that the memory will have."""
        return self._lazy_dtype

    @property
    def shape(self) -> Size:
        """Not known: raises RuntimeError."""
        raise RuntimeError(NO_SHAPE)

    @property
    def device(self) -> device:
        """Where the memory will be."""
        return CPU

    @property
    def data(self) -> Tensor:
        """An empty tensor of the same dtype."""
        return wrap(np.empty(0, self._lazy_dtype.numpy_dtype))

    @data.setter
    def data(self, other: Tensor) -> None:
        self._lazy_dtype = other.dtype

    def copy_(self, src: Tensor, non_blocking: bool = False) -> Any:
        """From another without a shape: nothing is there to be copied."""
        _empty(self).copy_(src.data if isinstance(src, UninitializedTensorMixin) else src)  # type: ignore[attr-defined]
        return self

    @property
    def requires_grad(self) -> bool:
        """Whether gradients will be wanted."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.data.requires_grad = value
        self._requires_grad = bool(value)

    @property
    def grad(self) -> Tensor | None:
        """The gradient, as empty as the tensor."""
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        empty = _empty(self)
        empty.grad = value
        self._grad = value

    def share_memory_(self) -> None:
        """Raises RuntimeError."""
        raise RuntimeError(NO_SHARING)

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a plain Parameter or tensor of this shape; its memory is not initialised."""
        memory = ops.empty(shape, device=device, dtype=dtype or self._lazy_dtype)
        self.__class__ = self.cls_to_become  # type: ignore[assignment]
        del self._lazy_dtype
        self._data = memory._data  # type: ignore[misc]
        self.data = memory  # of inference, if it is made there

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    __str__ = __repr__

    def __reduce_ex__(self, proto: Any) -> Any:
        return type(self), (self._requires_grad, CPU, self._lazy_dtype)


def make_uninitialized(cls: Any, requires_grad: bool, dtype: dt.dtype) -> Any:
    """A parameter or buffer without a shape."""
    _complete()
    dtype = dt.as_dtype(dtype)
    if not isinstance(requires_grad, bool):
        raise TypeError(
            "_make_subclass(): argument 'require_grad' (position 3) must be bool, not "
            f"{type(requires_grad).__name__}"
        )
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(CANNOT_REQUIRE_GRAD)
    result = new(cls)
    result._lazy_dtype = dtype
    if requires_grad:
        result._requires_grad = True
    return result


def _complete() -> None:
    """Put the stands on the class once: not before all methods of Tensor are there."""
    if UninitializedTensorMixin.is_complete:
        return
    UninitializedTensorMixin.is_complete = True
    own = {*vars(UninitializedTensorMixin), *IGNORED} - {"__iter__"}
    for name, value in list(vars(Tensor).items()):
        private = name.startswith("_") and not name.endswith("__")
        if name in own or private or not hasattr(type(value), "__get__"):
            continue
        if isinstance(value, property):
            if name not in OF_AUTOGRAD:
                setattr(UninitializedTensorMixin, name, Passing(name))
        elif not isinstance(value, (staticmethod, classmethod, MissingAttribute)):
            setattr(UninitializedTensorMixin, name, (Passing if name in PASSING else Refused)(name))


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer is still uninitialized."""
    return isinstance(param, UninitializedTensorMixin)
