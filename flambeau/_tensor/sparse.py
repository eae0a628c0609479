"""Sparse tensors in coordinate form (COO): their fields, and questions about them.

A sparse tensor of shape [S1, .., Sm, D1, .., Dn] with m sparse and n dense dims keeps

* `_places`: the coordinates of its entries, an int64 tensor [m, nnz];
* `_entries`: their values, a tensor [nnz, D1, .., Dn] (`with_entries.py`).

A place may come several times: its entries add up; `coalesce` adds them and sorts.
"""

from __future__ import annotations

from typing import Any, NoReturn

from flambeau._core.layout import Size, _Constant, sparse_coo
from flambeau._tensor import printing
from flambeau._tensor.attributes import FIELDS
from flambeau._tensor.examples import numbers_under
from flambeau._tensor.queries import TYPE_NAMES
from flambeau._tensor.tensor import Tensor, constructors, new
from flambeau._tensor.with_entries import (
    NotStrided,
    SparseFirst,
    WithEntries,
    _shown_as,
    alias,
)

__all__ = ["NotStrided", "SparseFirst", "SparseTensor", "alias", "sparse_tensor"]


class SparseTensor(WithEntries):
    """A tensor of layout `torch.sparse_coo`; see the module's text."""

    _places: Tensor
    _coalesced: bool

    exists = False
    """Whether this process ever made one: optimizers need not look for them before."""

    is_sparse = True

    def _as_grad(self, of_entries: Tensor) -> SparseTensor:
        return constructors["sparse_grad"](self, of_entries)  # type: ignore[no-any-return]

    # ---- what it is

    @property
    def layout(self) -> _Constant:
        """`torch.sparse_coo`."""
        return sparse_coo

    @property
    def nbytes(self) -> NoReturn:  # type: ignore[override]
        """Not defined; RuntimeError."""
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent "
            "tensors, add the nbytes of the indices and values.  If you want the size of the  "
            "equivalent dense tensor, multiply numel() by element_size()"
        )

    def stride(self, dim: int | None = None) -> Any:
        """0 for every dim: the elements have no place in memory."""
        return (0,) * self.ndim if dim is None else 0

    def storage_offset(self) -> int:
        """Always 0."""
        return 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """False: the elements have no order in memory."""
        return False

    def type(self, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        """The name of the tensor's type (`torch.sparse.FloatTensor`), or it in another type."""
        if dtype is None:
            return TYPE_NAMES[self.dtype].replace("torch.", "torch.sparse.")
        return Tensor.type(self, dtype)  # type: ignore[attr-defined]

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

    # ---- text

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        places, entries = numbers_under(self._places._data), numbers_under(self._entries._data)
        return printing.format_sparse(
            {"indices": places, "values": entries}, self._suffixes(self._nnz())
        )

    __str__ = __repr__  # type: ignore[assignment]


FIELDS.update(WithEntries.__annotations__ | SparseTensor.__annotations__)


_shown_as(SparseTensor, Tensor)


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
