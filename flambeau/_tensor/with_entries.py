"""What tensors have whose elements are not all in memory: entries, and places for them.

`_entries` is a dense tensor with the values that are there; what is differentiated are these, by
the rows of dense tensors that every operator here is made of, and `requires_grad`, `grad_fn` and
`grad` of the tensor are those of its entries.

Such a tensor has no `_data`, so that dense operators fail where they look for an array, with
`NotStrided`. Only then do they ask `flambeau._ops.sparse` for a form for sparse tensors: dense
tensors pay nothing for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

from flambeau._core import dtype as dt
from flambeau._core.device import device
from flambeau._core.layout import Size
from flambeau._tensor import overriding
from flambeau._tensor.queries import _checked_dim, _node_title
from flambeau._tensor.tensor import Tensor, new


class NotStrided(NotImplementedError, AttributeError):
    """Raised where an operator for dense tensors looks for the array of a sparse one."""

    def __reduce__(self) -> Any:
        return NotImplementedError, self.args


class SparseFirst(RuntimeError):
    """`add(sparse, dense)`, which PyTorch wants the other way round."""

    def __reduce__(self) -> Any:
        return RuntimeError, self.args


def _shown_as(kind: type, known: type) -> None:
    """Users see the name of the class that this one stands for, in tracebacks and `repr`."""
    kind.__name__, kind.__qualname__ = known.__name__, known.__qualname__
    kind.__module__ = known.__module__


_shown_as(NotStrided, NotImplementedError)
_shown_as(SparseFirst, RuntimeError)


def _caller() -> str:
    """The name of the function, private ones aside, that looked for the array."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_name.startswith("_"):
        if frame.f_code.co_name.startswith("__"):
            break
        frame = frame.f_back
    return frame.f_code.co_name


def title(layout: Any) -> str:
    """PyTorch's name of a layout in its errors: `SparseCsr`, `Sparse`, `Strided`."""
    name = str(layout).removeprefix("torch.").removesuffix("_coo")
    return "".join(word.title() for word in name.split("_"))


class WithEntries(Tensor):
    """A tensor of entries at places; see the module's text. `coordinates.py` and `compressed.py`
    say where the places are."""

    _entries: Tensor
    _size: Size
    _given_grad: Any = None  # the gradient that was set, to be the same object
    _title: str | None = None  # the node's name where it differs from that of the entries' node

    __torch_function__ = staticmethod(overriding.disabled)
    is_meta = False

    @property
    def device(self) -> device:
        """Where the entries live."""
        return self._entries.device

    @property
    def is_cpu(self) -> bool:
        """Whether they live in the computer's memory."""
        return self._entries.is_cpu

    @property
    def is_cuda(self) -> bool:
        """Whether they live in that of a GPU."""
        return self._entries.is_cuda

    # ---- what dense operators look for

    @property
    def _data(self) -> NoReturn:  # type: ignore[override]
        raise NotStrided(f"{_caller()} needs a dense tensor, but got one of layout "
                         f"{self.layout}; Tensor.to_dense() makes a dense copy")  # fmt: skip

    @property
    def _requires_grad(self) -> bool:  # type: ignore[override]
        return self._entries.requires_grad

    @_requires_grad.setter
    def _requires_grad(self, value: bool) -> None:
        self._entries._requires_grad = value

    @property
    def _node(self) -> Any:  # type: ignore[override]
        return self._entries.grad_fn

    @_node.setter
    def _node(self, node: Any) -> None:
        self._entries._node = node

    # ---- autograd

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are wanted for the entries."""
        return self._entries.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._entries.requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Set `requires_grad` and return the tensor."""
        self._entries.requires_grad = requires_grad
        return self

    @property
    def grad(self) -> Any:
        """The gradient of a leaf: sparse, with an entry for each place of this tensor."""
        found = self._entries._grad
        if found is None:
            return None
        given = self._given_grad
        return given if given is not None and given._entries is found else self._as_grad(found)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._entries._grad = None if value is None else value._entries
        self._given_grad = value

    def _as_grad(self, of_entries: Tensor) -> Any:
        """The gradient of this leaf from that of its entries."""
        raise NotImplementedError

    # ---- what it is

    @property
    def dtype(self) -> dt.dtype:
        """The element type."""
        return self._entries.dtype

    @property
    def shape(self) -> Size:
        """The size of every dim."""
        return self._size

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self._size)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._entries.itemsize

    def dim(self) -> int:
        """The number of dims."""
        return len(self._size)

    ndimension = dim

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dim."""
        return self._size if dim is None else self._size[_checked_dim(dim, len(self._size))]

    def numel(self) -> int:
        """The number of elements, zeros included."""
        return self._size.numel()

    nelement = numel

    def element_size(self) -> int:
        """Bytes of one element."""
        return self._entries.itemsize

    def is_same_size(self, other: Tensor) -> bool:
        """Whether the shapes are equal."""
        return tuple(self._size) == tuple(other.shape)

    def is_complex(self) -> bool:
        """Whether the type is complex."""
        return self.dtype.is_complex

    def __len__(self) -> int:
        if not self._size:
            raise TypeError("len() of a 0-d tensor")
        return self._size[0]

    # ---- what it has not

    def data_ptr(self) -> NoReturn:
        """Raises RuntimeError: there is no one memory."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    tolist = data_ptr

    def numpy(self, *, force: bool = False) -> NoReturn:
        """Raises TypeError: NumPy has no sparse arrays."""
        raise TypeError(f"can't convert {title(self.layout)} layout tensor to numpy. "
                        "Use Tensor.to_dense() first.")  # fmt: skip

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        self.numpy()

    def __array_ufunc__(self, ufunc: Any, how: str, *inputs: Any, **kwargs: Any) -> NoReturn:
        self.numpy()

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError("Cannot assign to a sparse tensor")

    # ---- text

    def _suffixes(self, count: int) -> list[str]:
        """What follows the parts in a tensor's text."""
        where = [] if self.is_cpu else [f"device='{self.device}'"]
        suffixes = [*where, f"size={tuple(self._size)}", f"nnz={count}"]
        usual = (dt.default_dtype(), dt.default_complex(), dt.int64, dt.bool_)
        if self.dtype not in usual:
            suffixes.append(f"dtype={self.dtype}")
        suffixes.append(f"layout={self.layout}")
        node = self._node
        if node is not None:
            suffixes.append(f"grad_fn=<{self._title or _node_title(node)}>")
        elif self.requires_grad:
            suffixes.append("requires_grad=True")
        return suffixes


def also_by_class(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of Tensor that tensors with entries have in a form of their own, which is found too
    where it is called by the class, as in `torch.Tensor.to_dense(x)`."""

    @wraps(method)
    def found(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, WithEntries):
            own = getattr(type(self), method.__name__)
            if own is not getattr(Tensor, method.__name__):
                return own(self, *args, **kwargs)
        return method(self, *args, **kwargs)

    return found


def alias(tensor: Tensor) -> Tensor:
    """A tensor over the same memory and version count, without history."""
    result: Any = new(Tensor)
    result._data = tensor._data
    result._root = tensor if tensor._root is None else tensor._root
    return result  # type: ignore[no-any-return]
