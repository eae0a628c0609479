"""The Tensor class: fields and plain properties. Operators are attached from `flambeau._ops`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._core.device import CPU, META, device, made_on, thread
from flambeau._core.layout import Size, _Constant, strided
from flambeau._core.missing import MissingAttribute
from flambeau._core.tables import entering
from flambeau._runtime.cpu import element_strides
from flambeau._tensor.attributes import FIELDS, TensorBase, attributes
from flambeau._tensor.device_array import DeviceArray, constant, from_host
from flambeau._tensor.meta import Meta, like
from flambeau._tensor.numberless import as_array
from flambeau._tensor.pinned_arrays import wanted
from flambeau._tensor.storage import UntypedStorage

new = object.__new__
watch = modes.watch
Function = TypeVar("Function", bound=Callable[..., Any])


constructors: dict[str, Callable[..., Any]] = {}
"""What upper layers do for Tensor: made there, called here by name."""


on_build: list[Callable[[str, Any], None]] = []
"""Who is told of every public function that comes into being: who redirects them listens."""


class _TensorMeta(type):
    """Puts what guards subclasses before Tensor, see `overriding`, and tells of new methods."""

    def __setattr__(cls, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if on_build and cls is Tensor and is_ours(value):
            for listener in on_build:
                listener(f"Tensor.{name}", value)

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **words: Any) -> Any:
        if len(bases) > 1:  # one that is no tensor may come first
            body.setdefault("__dict__", attributes)
        if "__module__" not in body:  # of `type(name, bases, body)`; Python would take this file
            body["__module__"] = sys._getframe(1).f_globals.get("__name__", __name__)
        return super().__new__(cls, name, bases, body, **words)

    def mro(cls) -> list[type]:
        order = super().mro()
        arrange = constructors.get("order_of_bases")
        return order if arrange is None else arrange(cls, order)  # type: ignore[no-any-return]


def is_ours(value: Any) -> bool:
    """Whether a method or property is the library's, and not one that a user puts on Tensor."""
    module = getattr(getattr(value, "fget", value), "__module__", None) or ""
    return module in ("torch", "torch._C", "torch._tensor") or module.startswith("flambeau")


class Counter:
    """A count of in-place writes that outlives the tensors: see `autograd.versions`."""

    __slots__ = ("count",)
    count: int


class Tensor(TensorBase, metaclass=_TensorMeta):
    """A multi-dimensional array of one element type, with automatic differentiation.

    Fields that most tensors do not use are class attributes, set on an instance only when needed:
    making a tensor sets `_data` alone (benchmarks/op_overhead.py, "operator_add").

    >>> import flambeau as torch
    >>> x = torch.Tensor([1, 2])
    >>> x.dtype, x.shape
    (torch.float32, torch.Size([2]))
    """

    _data: np.ndarray
    _requires_grad: bool = False
    _node: Any = None  # what made this tensor: a node of the autograd graph; None for leaves
    _version_count: int = 0  # counts in-place writes; only the tensor that owns the memory counts
    _counter: Counter | None = None  # the same count, where a node saved a result over this memory
    _root: Tensor | None = None  # the tensor that owns the memory; None: this one
    _base: Tensor | None = None  # for views: the tensor that all views of this memory started from
    _view_version: int = 0  # the count at which `_node` of a view was right
    _creation: str = ""  # why in-place writes to this view are limited: see autograd.history
    _grad: Tensor | None = None
    _grad_dtype: Any = False  # the type of a leaf's gradient; None: any; False: the leaf's own
    _hooks: Any = None
    _accumulator: Any = None
    _began: int = 0  # of a leaf that got other memory: the first node that leads to it
    _retain: Any = None
    _inference: bool = False
    _counts: bool = False  # of an inference tensor that is used outside: writes to it are counted
    _storage: UntypedStorage | None = None
    _lent: bool = False  # of a tensor that owns memory: whether NumPy's arrays look at it
    _tangents: dict[Any, Any] | None = None  # what it carries in forward mode, by level
    _stands_for: Any = None  # the transform of functions that made this leaf: see `func.reverse`
    _stored: np.ndarray | None = None  # the memory under values that are its conjugate: see bits
    _conjugated: bool = False
    _negated: bool = False
    _is_param = False
    __array_priority__ = 1000
    __dict__ = attributes  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        if cls is Tensor:
            return constructors["Tensor"](*args, **kwargs)  # type: ignore[no-any-return]
        return constructors["of_class"](constructors["Tensor"](*args), cls)  # type: ignore[no-any-return]

    def __dir__(self) -> list[str]:
        """The names that this tensor has; those that only PyTorch's tensors have are left out, as
        is what was removed and only warns."""
        fields: dict[str, Any] = {}
        for kind in reversed(type(self).__mro__):
            fields.update(vars(kind))
        if self.device.type != "cuda":
            del fields["__cuda_array_interface__"]
        absent = {name for name, value in fields.items() if type(value) is MissingAttribute}
        return [*(fields.keys() | self.__dict__.keys()) - absent - {"volatile"}]

    @property
    def dtype(self) -> dt.dtype:
        """The element type.

        >>> import flambeau as torch
        >>> torch.tensor([1, 2]).dtype, torch.tensor([1.5]).dtype
        (torch.int64, torch.float32)
        """
        return dt.BY_NUMPY[self._data.dtype]

    @property
    def shape(self) -> Size:
        """The size of every dim.

        >>> import flambeau as torch
        >>> torch.ones(2, 3).shape
        torch.Size([2, 3])
        """
        return tuple.__new__(Size, self._data.shape)

    @property
    def ndim(self) -> int:
        """The number of dims.

        >>> import flambeau as torch
        >>> torch.ones(2, 3).ndim
        2
        """
        return self._data.ndim

    @property
    def device(self) -> device:
        """Where the data live; `x.to(device)` moves them.

        >>> import flambeau as torch
        >>> torch.ones(2).device
        device(type='cpu')
        """
        data: Any = self._data
        return CPU if data.__class__ is np.ndarray else data.place

    @property
    def is_meta(self) -> bool:
        """Whether this tensor has no memory.

        >>> import flambeau as torch
        >>> torch.ones(2, device='meta').is_meta
        True
        """
        return self._data.__class__ is Meta

    @property
    def is_cpu(self) -> bool:
        """Whether the data live in the computer's memory.

        >>> import flambeau as torch
        >>> torch.ones(2).is_cpu
        True
        """
        return self.device is CPU

    @property
    def is_cuda(self) -> bool:
        """Whether the data live in the memory of a GPU.

        >>> import flambeau as torch
        >>> torch.ones(2).is_cuda
        False
        """
        return isinstance(self._data, DeviceArray)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The description of a GPU's memory for other libraries."""
        from flambeau._tensor import cuda_arrays

        return cuda_arrays.described(self)

    @property
    def layout(self) -> _Constant:
        """How the data lie: `torch.strided`, or a layout of sparse tensors, which are of a class
        of their own.

        >>> import flambeau as torch
        >>> torch.ones(2).layout, torch.ones(2).to_sparse().layout
        (torch.strided, torch.sparse_coo)
        """
        return strided

    @property
    def itemsize(self) -> int:
        """Bytes of one element.

        >>> import flambeau as torch
        >>> torch.ones(2, dtype=torch.float64).itemsize
        8
        """
        return self._data.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements.

        >>> import flambeau as torch
        >>> torch.ones(2, 3).nbytes
        24
        """
        return self._data.size * self._data.itemsize

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are wanted for this tensor.

        >>> import flambeau as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> x.requires_grad, (x * 2).requires_grad, x.detach().requires_grad
        (True, True, False)
        """
        if self._requires_grad:
            return True
        return self._base is not None and self._base._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        constructors["set_requires_grad"](self, value)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    @property
    def is_leaf(self) -> bool:
        """Whether this tensor was made by the user and not by a recorded operator.

        >>> import flambeau as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> x.is_leaf, (x * 2).is_leaf
        (True, False)
        """
        return self.grad_fn is None

    @property
    def grad_fn(self) -> Any:
        """The node of the autograd graph that made this tensor; None for leaves.

        >>> import flambeau as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> type((x * 2).grad_fn).__name__, x.grad_fn
        ('MulBackward0', None)
        """
        return constructors["grad_fn"](self)

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` this tensor is.

        >>> import flambeau as torch
        >>> torch.ones(2, 3, requires_grad=True).unbind()[1].output_nr
        1
        """
        return 0 if self._node is None else self._node._output_number

    @property
    def _version(self) -> int:
        root = self if self._root is None else self._root
        if (self._inference or root._inference) and not self._counts:
            raise RuntimeError("Inference tensors do not track version counter.")
        return root._version_count if root._counter is None else root._counter.count

    @property
    def data(self) -> Tensor:
        """The same shape and memory, without history and with a version count of its own.

        What is written to it is seen here, but not by autograd, which may then compute wrong
        gradients without a word: prefer `detach`, whose writes autograd checks.

        >>> import flambeau as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> x.data
        tensor([1., 1.])
        """
        result = new(type(self)) if self._is_param is False else new(Tensor)
        result._data = self._data
        result._storage = storage_of(self)
        if self._inference:
            result._inference, result._counts = True, not modes.grad.inference
        return result  # type: ignore[no-any-return]

    @data.setter
    def data(self, other: Tensor) -> None:
        constructors["set_data"](self, other)

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    is_sparse = is_quantized = is_mkldnn = is_nested = False
    is_xpu = is_mps = is_sparse_csr = is_vulkan = is_ipu = is_hpu = is_xla = is_maia = is_mtia = (
        False
    )
    name: Any = None


FIELDS.update(Tensor.__annotations__)


provides = entering(constructors)
"""Register a function of an upper layer under a name that Tensor calls."""


def method(function: Function) -> Function:
    """Attach a function to Tensor as the method of the same name."""
    setattr(Tensor, function.__name__, function)
    return function


def shown(name: str) -> Callable[[Function], Function]:
    """Let classes and modes with `__torch_dispatch__` see a method of Tensor that is no row, under
    the name that it has in ATen: see `_ops/transforms/dispatched_methods.py`."""

    def mark(function: Function) -> Function:
        SHOWN.append((name, function))
        for listener in on_shown:
            listener(name, function)
        return function

    return mark


SHOWN: list[tuple[str, Callable[..., Any]]] = []
"""Methods that are no rows, by the names that they have in ATen."""
on_shown: list[Callable[[str, Callable[..., Any]], None]] = []
"""Who wants to be told of each further one."""


def without_memory(data: np.ndarray) -> Meta:
    """An array without memory laid out as another: what a tensor on the device "meta" has."""
    constructors["expect_meta"]()
    return like(data)


def placed(data: np.ndarray) -> Any:
    """An array for the tensor that is being made, on the device that was asked for (`prepare`)."""
    place = made_on()
    if thread.pins:
        return wanted(data, place)
    if place is None or data.__class__ is not np.ndarray:
        return data
    if place is META:
        return without_memory(data)
    return constant(data, place) if data.flags.c_contiguous else from_host(data, place)


def on_device_of(tensor: Tensor, other: Tensor) -> Tensor:
    """A new tensor of the host, moved to where another one lies."""
    if other._data.__class__ is not np.ndarray:
        place = other.device
        if place is META:
            tensor._data = without_memory(tensor._data)
        elif place is not CPU:
            tensor._data = constant(
                np.ascontiguousarray(tensor._data).reshape(tensor._data.shape), place
            )
    return tensor


def wrap(data: Any) -> Tensor:
    """A new tensor over an ndarray (NumPy scalars become 0-dim arrays)."""
    result = new(Tensor)
    result._data = data if type(data) is np.ndarray else as_array(data)
    if watch.results and modes.grad.enabled is None:
        result._inference = True
    return result  # type: ignore[no-any-return]


def memory_of(tensor: Tensor) -> np.ndarray:
    """The array over a tensor's memory, whatever its bits say of the values: see `bits`."""
    stored = tensor._stored
    return tensor._data if stored is None else stored


def class_of(tensor: Tensor) -> type:
    """The class of a tensor, as it is without a bit."""
    kind = type(tensor)
    return kind if tensor._stored is None else kind.without_bit  # type: ignore[attr-defined, no-any-return]


def storage_of(tensor: Tensor) -> UntypedStorage:
    """The memory that a tensor and its views share."""
    found = tensor._storage
    if found is not None and not found.has_left(memory_of(tensor)):
        return found
    root = tensor if tensor._root is None else tensor._root
    if root._storage is None or root._storage.has_left(memory_of(root)):
        root._storage = UntypedStorage.under(memory_of(root))
        root._storage.is_ours &= not root._lent
    if root is not tensor and not root._storage.holds(memory_of(tensor)):
        tensor._storage = UntypedStorage.under(
            memory_of(tensor)
        )  # its root looks at other memory since
        return tensor._storage
    return root._storage


def lend(tensor: Tensor) -> None:
    """Note that an array which is no tensor's looks at the memory: it cannot be resized then."""
    root = tensor if tensor._root is None else tensor._root
    root._lent = True
    if root._storage is not None:
        root._storage.is_ours = False
    if tensor._storage is not None:
        tensor._storage.is_ours = False


def strides_of(tensor: Tensor) -> tuple[int, ...]:
    """Strides in elements."""
    return element_strides(memory_of(tensor))
