"""What changes in flambeau when the emulation starts: methods, and functions with `device=`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.device import device
from flambeau._core.generator import default_generator
from flambeau._ops.factories import typed
from flambeau._ops.random import draws as random
from flambeau._ops.sparse import table
from flambeau._ops.table import namespace
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import BY_NAME
from flambeau._runtime import device_memory
from flambeau._tensor import tensor
from flambeau._tensor.sparse import SparseTensor
from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.tensor import Tensor
from flambeau.cuda.emulation import generators, transfer
from flambeau.cuda.emulation.places import At, place_of, working

PLACED = {
    "_tensor.conversion": ("tensor",),
    "_tensor.interop": ("copied_memory",),
    "_ops.factories.typed": ("of_default_type", "new_"),
    "_ops.sparse.constructors": ("to_sparse",),
    "_ops.copying.tensor_methods": (),
    "autograd.backward": ("_start_grad",),
    "autograd.accumulation": ("_own", "total"),
    "nn.parameter": ("empty_parameter",),
    "testing._creation": ("make_tensor",),
}
"""Functions that make tensors and are no rows: they work where `device=` or their tensors say."""


def install(places: Any) -> None:
    """Give Tensor its methods, and replace what was built before, wherever it is known."""
    replaced: dict[int, Any] = {}
    for module, names in PLACED.items():
        found = importlib.import_module(f"flambeau.{module}")
        for name in names:
            function = getattr(found, name)
            replaced[id(function)] = places.around(function)
    replaced.update(_rebuilt())
    replaced[id(random.stream_of)] = stream
    replaced[id(random.manual_seed)] = manual_seed
    replaced[id(random.seed)] = seed
    _place_sparse(places)
    _replace(replaced)
    _change_tensor()


def _place_sparse(places: Any) -> None:
    """What sparse tensors do is composed of functions that are no rows."""
    table.load()
    for name, function in table.TABLE.items():
        table.TABLE[name] = places.around(function)
    for name, value in list(vars(SparseTensor).items()):
        if getattr(value, "__module__", "").startswith("flambeau._ops.sparse") and callable(value):
            setattr(SparseTensor, name, places.around(value))


def _rebuilt() -> dict[int, Any]:
    """Functions of composites that were built without places, by the id of the old one."""
    kinds = {name: {op.kind for op in BY_NAME[name]} for name in namespace._functions}
    names = [name for name, found in kinds.items() if "composite" in found]
    before = {name: namespace._functions.pop(name) for name in names}
    return {id(function): namespace.get(name) for name, function in before.items()}


def _replace(replaced: dict[int, Any]) -> None:
    """Replace functions in all modules of flambeau, in Tensor, and where operators are kept."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("flambeau")]
    for holder in [*modules, Tensor, ops, *_namespaces(ops)]:
        for name, value in list(vars(holder).items()):
            new = replaced.get(id(value))
            if new is not None:
                setattr(holder, name, new)
    for name, value in tensor.constructors.items():
        tensor.constructors[name] = replaced.get(id(value), value)


def _namespaces(holder: Any) -> list[Any]:
    return [value for value in vars(holder).values() if isinstance(value, namespace.Namespace)]


def stream(generator: Any, name: str = "", filled: Any = None) -> Any:
    """The random stream of an operator: that of the device it works on, unless one is given.

    Raises:
        RuntimeError: the stream that is given is one of another kind of device.
    """
    place = working.place if filled is None else place_of(filled)
    if generator is None:
        found = generators.of_place(place)
        return BEFORE["stream"](None, name) if found is default_generator else found
    found = BEFORE["stream"](generator, name)
    generators.check_device(found, place)
    return found


BEFORE: dict[str, Any] = {
    "manual_seed": random.manual_seed, "stream": random.stream_of, "seed": random.seed
}  # fmt: skip
"""Functions that replaced ones call; in a dict, where `_replace` does not look."""


def manual_seed(seed: int) -> Any:
    """Start the default streams of the CPU and of all devices anew; returns the CPU's."""
    generators.manual_seed_all(seed)
    return BEFORE["manual_seed"](seed)


def seed() -> int:
    """Start all default streams from one seed of the system's randomness; returns the seed."""
    value: int = BEFORE["seed"]()
    generators.manual_seed_all(value)
    return value


# ---- Tensor


def _change_tensor() -> None:
    known: Any = Tensor
    for name, value in METHODS.items():
        setattr(known, name, value)
    known.numpy = _refusing(known.numpy)
    known.__array__ = _refusing(known.__array__)
    known.__reduce_ex__ = _pickled(known.__reduce_ex__)
    known.type = _typed(known.type)
    typed.TypedMeta.__instancecheck__ = _is_on_cpu(typed.TypedMeta.__instancecheck__)  # type: ignore[method-assign]
    storage: Any = UntypedStorage
    storage.device = property(lambda self: device(_place_of_bytes(self.array)))
    storage.cpu = lambda self: transfer.storage_to(self, device("cpu"))
    storage.is_cuda = property(lambda self: self.device.type == "cuda")


def _is_on_cpu(check: Callable[..., bool]) -> Callable[..., bool]:
    """`isinstance(x, torch.FloatTensor)`: the types of the CPU's tensors."""
    return lambda cls, instance: check(cls, instance) and not instance.is_cuda


def _place_of_bytes(array: np.ndarray) -> str:
    place = device_memory.place_of(array)
    return "cpu" if place == transfer.PINNED else place


def _index(self: Tensor) -> int:
    """The index of the tensor's device; -1 for the CPU."""
    return -1 if self.device.index is None else self.device.index


def _record_stream(self: Tensor, stream: Any) -> None:
    """Keep the memory until a stream is done: emulated streams are done at once."""


METHODS: dict[str, Any] = {
    "device": property(lambda self: device(place_of(self)), doc="Where the data lie."),
    "is_cuda": property(lambda self: place_of(self) != "cpu"),
    "is_cpu": property(lambda self: place_of(self) == "cpu"),
    "get_device": _index,
    "is_pinned": lambda self, device=None: transfer.is_pinned(self),
    "pin_memory": lambda self, device=None: transfer.pinned(self),
    "record_stream": _record_stream,
}


def _refusing(method: Callable[..., Any]) -> Callable[..., Any]:
    """`numpy()`: NumPy has no memory but the CPU's."""

    def call(self: Any, *args: Any, force: bool = False, **kwargs: Any) -> Any:
        if force:
            return self.detach().cpu().numpy(**kwargs)
        if self.is_cuda and not (self.requires_grad and method.__name__ == "numpy"):
            raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use "
                            "Tensor.cpu() to copy the tensor to host memory first.")  # fmt: skip
        return method(self, *args, **kwargs)

    call.__name__ = method.__name__
    call.__doc__ = method.__doc__
    return call


def _typed(method: Callable[..., Any]) -> Callable[..., Any]:
    """`type()`: `torch.cuda.FloatTensor`, and the way there."""

    def type(self: Any, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        """The name of the tensor's type (`torch.FloatTensor`), or the tensor in another type."""
        if dtype is None:
            name = method(self)
            return name.replace("torch.", "torch.cuda.", 1) if self.is_cuda else name
        if not isinstance(dtype, str):
            place = getattr(dtype, "place", None)
            if place is None and hasattr(dtype, "element_type"):
                place = "cpu"
            result = method(self, dtype)
            return result if place is None else result.to(place)
        place = "cuda" if dtype.startswith("torch.cuda.") else "cpu"
        return method(self, dtype.replace("torch.cuda.", "torch.")).to(place)

    return type


def _pickled(method: Callable[..., Any]) -> Callable[..., Any]:
    """Pickling: the tensor comes back to its device."""

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        function, args, *rest = method(self, protocol)
        if not self.is_cuda:
            return (function, args, *rest)
        return rebuild, (str(self.device), function, args)

    return __reduce_ex__


def rebuild(place: str, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """A tensor of a device from a pickle.

    Raises:
        RuntimeError: the pickle is read where CUDA is not emulated.
    """
    if modes.watch.places is None:
        raise RuntimeError("Attempting to deserialize object on a CUDA device but "
                           "torch.cuda.is_available() is False. If you are running on a CPU-only "
                           "machine, please use torch.load with map_location=torch.device('cpu') "
                           "to map your storages to the CPU.")  # fmt: skip
    result = function(*args)
    with At(place):
        result._data = result._data.copy(order="K")
    result._storage = None
    return result
