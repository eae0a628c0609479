"""The old constructors: `torch.Tensor(...)`, `torch.FloatTensor(...)`, `x.new(...)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import layout as lay
from flambeau._core.device import CPU, device
from flambeau._core.doc_text import with_example
from flambeau._core.layout import Size
from flambeau._core.settings import warn_once
from flambeau._ops.factories.making import untouched
from flambeau._ops.table.binder import plain_type_name
from flambeau._ops.table.namespace import ops
from flambeau._tensor import overriding
from flambeau._tensor.conversion import copy_of
from flambeau._tensor.storage import ARGUMENT_1, elements_under, is_storage
from flambeau._tensor.tensor import Tensor, provides, wrap


def legacy(element: dt.dtype, args: tuple[Any, ...], any_type: bool) -> Tensor:
    """Nothing, sizes, a Size, a tensor (whose view is returned) or a sequence.

    `any_type`: whether a tensor may be of another type than `element`.
    """
    if not args:
        return wrap(np.empty(0, element.numpy_dtype))
    first = args[0]
    if len(args) == 1:
        if isinstance(first, Tensor):
            return _same_memory(element, first, any_type)
        if is_storage(first):
            return over_storage(first, element, ARGUMENT_1)
        if isinstance(first, Size):
            return _of_sizes(element, tuple(first))
        if isinstance(first, str):
            raise TypeError(f"new(): invalid data type '{type(first).__name__}'")
        if isinstance(first, (list, tuple, np.ndarray)) or hasattr(first, "__len__"):
            return wrap(copy_of(first, element))
        if isinstance(first, (float, complex)):
            raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
    return _of_sizes(element, args)


def over_storage(storage: Any, element: dt.dtype, words: str = "") -> Tensor:
    """All whole elements of a storage, in its own memory."""
    result = wrap(elements_under(storage, element, words))
    result._storage = getattr(storage, "_untyped_storage", storage)
    return result


def _of_sizes(element: dt.dtype, sizes: tuple[Any, ...]) -> Tensor:
    for position, size in enumerate(sizes, 1):
        if not hasattr(size, "__index__"):
            raise TypeError(
                f"new(): argument 'size' failed to unpack the object at pos {position} with error "
                f'"type must be tuple of ints,but got {plain_type_name(size)}"'
            )
        if size < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {size}: {list(sizes)}"
            )
    return wrap(untouched(np.empty(sizes, element.numpy_dtype)))


def _same_memory(element: dt.dtype, tensor: Tensor, any_type: bool) -> Tensor:
    if not any_type and tensor.dtype is not element:
        raise TypeError(f"expected {_described(element)} (got {_described(tensor.dtype)})")
    with overriding.off():
        return ops.alias(tensor)  # type: ignore[no-any-return]


def _described(element: dt.dtype) -> str:
    """How torch's messages show tensor options."""
    return (
        f"TensorOptions(dtype={element.c_name}, device=cpu, layout=Strided, requires_grad=false "
        "(default), pinned_memory=false (default), memory_format=(nullopt))"
    )


@provides("Tensor")
def of_default_type(*args: Any, **words: Any) -> Tensor:
    """`torch.Tensor(...)`: of the default type; not on the default device."""
    if words:
        _check_words(args, **words)
    return legacy(dt.default_dtype(), args, any_type=True)


def _check_words(args: tuple[Any, ...], device: Any) -> None:
    """Raise for `device=` beside a tensor, and for another device than the CPU."""
    if args and isinstance(args[0], Tensor):
        raise RuntimeError("Legacy tensor constructor of the form torch.Tensor(tensor, "
                           "device=device) is not supported.  Use torch.tensor(...) or "
                           "torch.as_tensor(...) instead.")  # fmt: skip
    _check_place(device)


def _check_place(given: Any, home: device = CPU) -> None:
    """Raise for another kind of device than `home`, where these constructors make tensors."""
    place = home if given is None else given if isinstance(given, device) else device(given)
    if place.type != home.type:
        raise RuntimeError(f"legacy constructor expects device type: {home.type} but device type: "
                           f"{place.type} was passed")  # fmt: skip


class TypedMeta(type):
    """Types such as `torch.FloatTensor`: called, they make tensors; `isinstance` asks the type."""

    element: dt.dtype
    layout = lay.strided
    is_sparse = False
    is_cuda = False

    def __new__(cls, name: str, bases: tuple[Any, ...], names: dict[str, Any]) -> Any:
        for base in bases:
            raise TypeError(f"type 'torch.{base.__name__}' is not an acceptable base type")
        return super().__new__(cls, name, bases, names)

    def __call__(cls, *args: Any, **words: Any) -> Tensor:
        if words:
            _check_words(args, **words)
        return legacy(cls.element, args, any_type=False)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.is_cpu and instance.dtype is cls.element

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"

    @property
    def dtype(cls) -> dt.dtype:
        """The element type."""
        return cls.element

    @property
    def element_type(cls) -> dt.dtype:
        """The element type, as `Tensor.type` asks for it."""
        return cls.element


NAMES = {
    "FloatTensor": dt.float32, "DoubleTensor": dt.float64, "HalfTensor": dt.float16,
    "BFloat16Tensor": dt.bfloat16, "LongTensor": dt.int64, "IntTensor": dt.int32,
    "ShortTensor": dt.int16, "CharTensor": dt.int8, "ByteTensor": dt.uint8,
    "BoolTensor": dt.bool_, "ComplexFloatTensor": dt.complex64,
    "ComplexDoubleTensor": dt.complex128,
}  # fmt: skip
"""The names in torch and their element types."""

for _name, _element in NAMES.items():
    globals()[_name] = TypedMeta(
        _name, (), {"element": _element, "__module__": "torch",
                    "__doc__": with_example(
                        f"Makes and recognises tensors of {_element}: of a shape, or of numbers.",
                        f"torch.{_name}([[1, 0, 1]]).shape", "torch.Size([1, 3])")}
    )  # fmt: skip


def new(self: Tensor, *args: Any, size: Any = None, other: Any = None, **words: Any) -> Tensor:
    """A tensor of this one's type: `x.new(2, 3)`, `x.new([1, 2])`, `x.new(size=(2, 3))`.

    Raises:
        RuntimeError: `device=` names another kind of device than this tensor's, or stands beside a
            tensor.

    >>> import flambeau as torch
    >>> torch.ones(1, dtype=torch.float64).new([1, 2])
    tensor([1., 2.], dtype=torch.float64)
    """
    if other is not None:
        args = (other,)
    place = self.device
    if words:
        _check_words_of_new(args, **words, home=place)
    made = (legacy(self.dtype, args, any_type=False) if size is None
            else _of_sizes(self.dtype, tuple(size)))  # fmt: skip
    return made if place is CPU or made.device is place else made.to(place)  # type: ignore[attr-defined, no-any-return]


def _check_words_of_new(args: tuple[Any, ...], device: Any, home: device) -> None:
    if args and isinstance(args[0], Tensor):
        raise RuntimeError("Legacy tensor new of the form tensor.new(tensor, device=device) is not "
                           "supported.  Use torch.as_tensor(...) instead.")  # fmt: skip
    _check_place(device, home)


Tensor.new = new  # type: ignore[attr-defined]


def _typed(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module 'torch' has no attribute '{name}'")
    return globals()[name]


OLD_DEFAULT = (
    "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
    "torch.set_default_dtype() and torch.set_default_device() as alternatives."
)


def set_default_tensor_type(t: Any) -> None:
    """The old way to choose the default type: `torch.DoubleTensor` or its name.

    Raises:
        TypeError: it is no floating-point type of tensor.

    >>> import flambeau as torch
    >>> torch.set_default_dtype(torch.float64)  # the way of today
    >>> torch.tensor([1.0]).dtype
    torch.float64
    >>> torch.set_default_dtype(torch.float32)
    """
    if isinstance(t, str) and ".cuda." in t:
        warn_once(OLD_DEFAULT)
        raise TypeError(f"type {t} not available. Torch not compiled with CUDA enabled.")
    known = _typed(t.rpartition(".")[2]) if isinstance(t, str) else t
    wanted = "only floating-point types are supported as the default type"
    if not isinstance(known, TypedMeta):
        raise TypeError(f"invalid type object: {wanted}")
    if not known.element.is_floating_point:
        raise TypeError(wanted)
    if known.is_sparse:
        raise TypeError("only dense types are supported as the default type")
    warn_once(OLD_DEFAULT)
    dt.set_default_dtype(known.element)
