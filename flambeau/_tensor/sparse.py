"""Sparse tensors in coordinate form (COO): their fields, and questions about them.

A sparse tensor of shape [S1, .., Sm, D1, .., Dn] with m sparse and n dense dims keeps

* `_places`: the coordinates of its entries, an int64 tensor [m, nnz];
* `_entries`: their values, a tensor [nnz, D1, .., Dn].

A place may come several times: its entries add up; `coalesce` adds them and sorts. What is
differentiated are the entries, by the rows of dense tensors that every operator here is made of;
`requires_grad`, `grad_fn` and `grad` of the tensor are those of its entries.

A sparse tensor has no `_data`, so that dense operators fail where they look for an array, with
`NotStrided`. Only then do they ask `flambeau._ops.sparse` for a form for sparse tensors: dense
tensors pay nothing for it.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from flambeau._core import dtype as dt
from flambeau._core.device import device
from flambeau._core.layout import Size, _Constant, sparse_coo
from flambeau._tensor import overriding, printing
from flambeau._tensor.attributes import FIELDS
from flambeau._tensor.examples import numbers_under
from flambeau._tensor.queries import TYPE_NAMES, _checked_dim, _node_title
from flambeau._tensor.tensor import Tensor, constructors, new


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


# Programs see the classes of torch: tracebacks and `type(x).__name__` give these names.
for _class, _shown in ((NotStrided, NotImplementedError), (SparseFirst, RuntimeError)):
    _class.__module__, _class.__name__ = _shown.__module__, _shown.__name__
    _class.__qualname__ = _shown.__qualname__


def _caller() -> str:
    """The name of the function, private ones aside, that looked for the array."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_name.startswith("_"):
        if frame.f_code.co_name.startswith("__"):
            break
        frame = frame.f_back
    return frame.f_code.co_name


class SparseTensor(Tensor):
    """A tensor of layout `torch.sparse_coo`; see the module's text."""

    _places: Tensor
    _entries: Tensor
    _size: Size
    _coalesced: bool
    _given_grad: SparseTensor | None = None  # the gradient that was set, to be the same object
    _title: str | None = None  # the node's name where it differs from that of the entries' node

    __torch_function__ = staticmethod(overriding.disabled)
    exists = False
    """Whether this process ever made one: optimizers need not look for them before."""

    is_sparse = True
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
                         "torch.sparse_coo; Tensor.to_dense() makes a dense copy")  # fmt: skip

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

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Set `requires_grad` and return the tensor."""
        self._entries.requires_grad = requires_grad
        return self

    @property
    def grad(self) -> SparseTensor | None:
        """The gradient of a leaf: sparse, with an entry for each place of this tensor."""
        found = self._entries._grad
        if found is None:
            return None
        given = self._given_grad
        if given is not None and given._entries is found:
            return given
        return constructors["sparse_grad"](self, found)  # type: ignore[no-any-return]

    @grad.setter
    def grad(self, value: SparseTensor | None) -> None:
        self._entries._grad = None if value is None else value._entries
        self._given_grad = value

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
    def layout(self) -> _Constant:
        """`torch.sparse_coo`."""
        return sparse_coo

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._entries.itemsize

    @property
    def nbytes(self) -> NoReturn:  # type: ignore[override]
        """Not defined; RuntimeError."""
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent "
            "tensors, add the nbytes of the indices and values.  If you want the size of the  "
            "equivalent dense tensor, multiply numel() by element_size()"
        )

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

    def stride(self, dim: int | None = None) -> Any:
        """0 for every dim: the elements have no place in memory."""
        return (0,) * self.ndim if dim is None else 0

    def storage_offset(self) -> int:
        """Always 0."""
        return 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """False: the elements have no order in memory."""
        return False

    def is_same_size(self, other: Tensor) -> bool:
        """Whether the shapes are equal."""
        return tuple(self._size) == tuple(other.shape)

    def is_complex(self) -> bool:
        """Whether the type is complex."""
        return self.dtype.is_complex

    def type(self, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        """The name of the tensor's type (`torch.sparse.FloatTensor`), or it in another type."""
        if dtype is None:
            return TYPE_NAMES[self.dtype].replace("torch.", "torch.sparse.")
        return Tensor.type(self, dtype)  # type: ignore[attr-defined]

    def __len__(self) -> int:
        if not self._size:
            raise TypeError("len() of a 0-d tensor")
        return self._size[0]

    # ---- its parts

    def sparse_dim(self) -> int:
        """The number of sparse dims, which come first."""
        return self._places._data.shape[0]

    def dense_dim(self) -> int:
        """The number of dense dims."""
        return self._entries._data.ndim - 1

    _dimI, _dimV = sparse_dim, dense_dim

    def _nnz(self) -> int:
        """The number of entries."""
        return self._places._data.shape[1]

    def is_coalesced(self) -> bool:
        """Whether each place comes once, in order, as far as is known."""
        return self._coalesced

    def _indices(self) -> Tensor:
        """The coordinates of the entries, [sparse_dim, nnz]."""
        return alias(self._places)

    def _values(self) -> Tensor:
        """The entries, [nnz, dense sizes], without history."""
        return alias(self._entries)

    def indices(self) -> Tensor:
        """The coordinates of a coalesced tensor, [sparse_dim, nnz]."""
        self._require_coalesced("indices")
        return self._places

    def values(self) -> Tensor:
        """The entries of a coalesced tensor, [nnz, dense sizes]; gradients flow through."""
        self._require_coalesced("values")
        return self._entries

    def _require_coalesced(self, what: str) -> None:
        if not self._coalesced:
            raise RuntimeError(f"Cannot get {what} on an uncoalesced tensor, please call "
                               ".coalesce() first")  # fmt: skip

    def _coalesced_(self, coalesced: bool) -> SparseTensor:
        """Say whether the tensor is coalesced, which is not checked."""
        self._coalesced = coalesced
        return self

    # ---- what it has not

    def untyped_storage(self) -> NoReturn:
        """Raises NotImplementedError: indices and values have a storage each."""
        raise NotImplementedError("Cannot access storage of SparseTensorImpl")

    def data_ptr(self) -> NoReturn:
        """Raises RuntimeError: there is no one memory."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    tolist = data_ptr

    def numpy(self, *, force: bool = False) -> NoReturn:
        """Raises TypeError: NumPy has no sparse arrays."""
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        self.numpy()

    def __array_ufunc__(self, ufunc: Any, how: str, *inputs: Any, **kwargs: Any) -> NoReturn:
        self.numpy()

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError("Cannot assign to a sparse tensor")

    # ---- text

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        where = [] if self.is_cpu else [f"device='{self.device}'"]
        suffixes = [*where, f"size={tuple(self._size)}", f"nnz={self._nnz()}"]
        usual = (dt.default_dtype(), dt.default_complex(), dt.int64, dt.bool_)
        if self.dtype not in usual:
            suffixes.append(f"dtype={self.dtype}")
        suffixes.append("layout=torch.sparse_coo")
        node = self._node
        if node is not None:
            suffixes.append(f"grad_fn=<{self._title or _node_title(node)}>")
        elif self.requires_grad:
            suffixes.append("requires_grad=True")
        places, entries = numbers_under(self._places._data), numbers_under(self._entries._data)
        return printing.format_sparse(places, entries, suffixes)

    __str__ = __repr__  # type: ignore[assignment]


FIELDS.update(SparseTensor.__annotations__)


_shown_as(SparseTensor, Tensor)


def alias(tensor: Tensor) -> Tensor:
    """A tensor over the same memory and version count, without history."""
    result: Any = new(Tensor)
    result._data = tensor._data
    result._root = tensor if tensor._root is None else tensor._root
    return result  # type: ignore[no-any-return]


def sparse_tensor(
    places: Tensor, entries: Tensor, size: Any, coalesced: bool | None = None
) -> SparseTensor:
    """A sparse tensor of these parts, which are not checked; at most one entry is coalesced."""
    SparseTensor.exists = True
    result: Any = new(SparseTensor)
    result._places = places
    result._entries = entries
    result._size = size if type(size) is Size else Size(size)
    result._coalesced = places._data.shape[1] < 2 if coalesced is None else coalesced
    return result  # type: ignore[no-any-return]


SparseTensor.__name__ = SparseTensor.__qualname__ = "Tensor"  # as torch's are of the class Tensor
