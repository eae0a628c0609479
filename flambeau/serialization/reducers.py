"""How tensors and torch's own small types are written: as calls that rebuild them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flambeau._core.class_homes import own_module
from flambeau._core.device import CPU, device
from flambeau._core.generator import Generator
from flambeau._core.layout import Size, contiguous_strides, layout, strided
from flambeau._runtime.cpu import address
from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.tensor import Tensor, class_of, memory_of, storage_of, strides_of, wrap
from flambeau.serialization import rebuild
from flambeau.serialization.names import PACKAGE, resolve
from flambeau.serialization.sparse import reduce_sparse
from flambeau.serialization.storages import STORAGE_TYPES, UNTYPED, StorageType


@dataclass(frozen=True, slots=True)
class StorageReference:
    """A storage on its way into a file, seen as elements of `type`."""

    storage: UntypedStorage
    type: StorageType


def reducer_of(obj: Any) -> Callable[[Any], tuple[Any, ...]] | None:
    """Torch's way to write an object, where it is not Python's."""
    if isinstance(obj, Tensor):
        return None if _reduces_itself(type(obj)) else reduce_tensor
    if isinstance(obj, Generator):
        return _reduce_generator
    return REDUCERS.get(type(obj))


def _reduces_itself(cls: type) -> bool:
    """Whether a user's subclass of Tensor brings its own way to be pickled."""
    for ancestor in cls.__mro__:
        if own_module(ancestor).partition(".")[0] == PACKAGE:
            return False
        if "__reduce_ex__" in vars(ancestor) or "__reduce__" in vars(ancestor):
            return True
    return False


def reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """The call that rebuilds a tensor, as torch writes it."""
    if tensor.layout is not strided:
        return reduce_sparse(tensor) if not tensor._is_param else _reduce_parameter(tensor, {})
    if hasattr(type(tensor), "materialize"):  # a lazy module's parameter that has no shape yet
        return type(tensor), (tensor.requires_grad,)
    state = {name: value for name, value in vars(tensor).items() if rebuild.is_user_attribute(name)}
    if tensor._is_param:
        return _reduce_parameter(tensor, state)
    function, arguments = reduce_plain(tensor, tensor.requires_grad)
    if class_of(tensor) is Tensor and not state:
        return function, arguments
    return rebuild.rebuild_from_type_v2, (function, class_of(tensor), arguments, state)


def _reduce_parameter(tensor: Tensor, state: dict[str, Any]) -> tuple[Any, ...]:
    requires_grad = tensor.requires_grad
    is_plain = tensor.layout is strided
    plain = Detached(tensor) if is_plain else tensor.detach()  # type: ignore[attr-defined]
    arguments: tuple[Any, ...] = (plain, requires_grad, OrderedDict())
    if not state:
        return rebuild.rebuild_parameter, arguments
    return rebuild.rebuild_parameter_with_state, (*arguments, state)


@dataclass(frozen=True, slots=True)
class Detached:
    """The plain tensor inside a Parameter."""

    tensor: Tensor


def reduce_plain(tensor: Tensor, requires_grad: bool) -> tuple[Any, tuple[Any, ...]]:
    """The call that rebuilds a tensor without its class and attributes."""
    if tensor.is_meta:
        layout = (tensor.dtype, tuple(tensor._data.shape), _strides(tensor))
        return rebuild.rebuild_meta_tensor, (*layout, requires_grad)
    storage = storage_of(tensor)
    size = tuple(memory_of(tensor).shape)
    hooks: OrderedDict[int, Any] = OrderedDict()
    place = (_offset(tensor, storage), size, _strides(tensor), requires_grad, hooks)
    bits = {"conj": tensor._conjugated, "neg": tensor._negated}
    metadata = {name: True for name, is_set in bits.items() if is_set}
    last = (metadata,) if metadata else ()
    storage_type = STORAGE_TYPES.get(tensor.dtype)
    if storage_type is None:
        arguments = (StorageReference(storage, UNTYPED), *place, tensor.dtype, *last)
        return rebuild.rebuild_tensor_v3, arguments
    return rebuild.rebuild_tensor_v2, (StorageReference(storage, storage_type), *place, *last)


def _offset(tensor: Tensor, storage: UntypedStorage) -> int:
    data = memory_of(tensor)
    has_place = data.size or storage.holds(data)
    return (address(data) - storage.start) // data.itemsize if has_place else 0


def _strides(tensor: Tensor) -> tuple[int, ...]:
    strides = strides_of(tensor)
    data = memory_of(tensor)
    if data.size == 0 and not any(strides):
        # NumPy gives its own empty arrays strides of 0.
        return contiguous_strides(data.shape)
    return strides


def _reduce_generator(generator: Generator) -> tuple[Any, ...]:
    """Torch writes the seed, an offset that only CUDA has, and the state."""
    state = generator.get_state()
    as_tensor = state if isinstance(state, Tensor) else wrap(state)
    return resolve("torch", "Generator"), (CPU,), (generator.initial_seed(), None, as_tensor)


def _reduce_device(value: device) -> tuple[Any, ...]:
    return device, ((value.type,) if value.index is None else (value.type, value.index))


REDUCERS: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    Size: lambda value: (Size, (tuple(value),)),
    device: _reduce_device,
    layout: lambda value: (rebuild.get_layout, (repr(value),)),
    Detached: lambda value: reduce_plain(value.tensor, False),
}
