"""Compressed sparse tensors (CSR, CSC, BSR, BSC): their fields, and questions about them.

A tensor of shape [*batch, R, C, *dense] keeps, for rows in CSR and BSR, for columns in CSC and BSC:

* `_pointers`: where each row's entries begin and the last one's end, [*batch, R + 1];
* `_others`: the column of each entry, [*batch, nnz], ascending in each row;
* `_entries`: the values, [*batch, nnz, *dense] (`with_entries.py`).

In BSR and BSC an entry is a block [b0, b1] of the matrix, [*batch, nnz, b0, b1, *dense], and rows
and columns are those of blocks. Every matrix of a batch has the same number of entries.
"""

from __future__ import annotations

from typing import Any, NoReturn

from flambeau._core import layout as lay
from flambeau._core.layout import Size, _Constant
from flambeau._tensor import printing
from flambeau._tensor.attributes import FIELDS
from flambeau._tensor.examples import numbers_under
from flambeau._tensor.tensor import Tensor, new
from flambeau._tensor.with_entries import WithEntries, _shown_as, alias, title

ROWS = (lay.sparse_csr, lay.sparse_bsr)
"""Layouts that compress rows; the others compress columns."""
BLOCKS = (lay.sparse_bsr, lay.sparse_bsc)
"""Layouts whose entries are blocks."""
LAYOUTS = (lay.sparse_csr, lay.sparse_csc, lay.sparse_bsr, lay.sparse_bsc)
TURNED = {lay.sparse_csr: lay.sparse_csc, lay.sparse_csc: lay.sparse_csr,
          lay.sparse_bsr: lay.sparse_bsc, lay.sparse_bsc: lay.sparse_bsr}  # fmt: skip
"""The layout that the transpose has."""


class CompressedTensor(WithEntries):
    """A tensor of one of the four compressed layouts; see the module's text."""

    _pointers: Tensor
    _others: Tensor
    _layout: _Constant

    exists = False
    """Whether this process ever made one."""

    def _as_grad(self, of_entries: Tensor) -> CompressedTensor:
        return at_places(self, of_entries)

    @property
    def layout(self) -> _Constant:
        """One of `torch.sparse_csr`, `sparse_csc`, `sparse_bsr`, `sparse_bsc`."""
        return self._layout

    @property
    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        """Whether the layout is `torch.sparse_csr`."""
        return self._layout is lay.sparse_csr

    @property
    def nbytes(self) -> int:
        """Bytes that the elements would take if all were there."""
        return self.numel() * self.element_size()

    def stride(self, dim: int | None = None) -> NoReturn:
        """Raises RuntimeError: the elements have no place in memory."""
        raise RuntimeError("Sparse CSR tensors do not have strides")

    def is_contiguous(self, memory_format: Any = None) -> NoReturn:
        """Raises RuntimeError: the elements have no order in memory."""
        raise RuntimeError("Sparse CSR tensors do not have is_contiguous")

    contiguous = is_contiguous

    def storage_offset(self) -> int:
        """Always 0."""
        return 0

    def type(self, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        """Raises RuntimeError: such tensors have no type's name."""
        if dtype is None:
            raise RuntimeError("Unimplemented backend SparseCsrCPU")
        return Tensor.type(self, dtype)  # type: ignore[attr-defined]

    def untyped_storage(self) -> NoReturn:
        """Raises NotImplementedError: the parts have a storage each."""
        raise NotImplementedError("Cannot access storage of SparseCsrTensorImpl")

    # ---- its parts

    @property
    def compresses_rows(self) -> bool:
        """Whether pointers are those of rows."""
        return self._layout in ROWS

    def batch_dims(self) -> int:
        """How many dims come before the matrix."""
        return self._pointers.ndim - 1

    def blocksize(self) -> tuple[int, int]:
        """The size of an entry: 1 by 1 where entries are no blocks."""
        if self._layout not in BLOCKS:
            return 1, 1
        first, second = self._entries.shape[self._pointers.ndim : self._pointers.ndim + 2]
        return first, second

    def sparse_dim(self) -> int:
        """2: the dims of the matrix."""
        return 2

    def dense_dim(self) -> int:
        """How many dims come after the matrix."""
        return len(self._size) - 2 - self.batch_dims()

    def _nnz(self) -> int:
        """The number of entries (blocks) of each matrix."""
        return self._others.shape[-1]

    def values(self) -> Tensor:
        """The entries; gradients flow through."""
        return self._entries

    def crow_indices(self) -> Tensor:
        """Where the entries of each row (of blocks) begin, [*batch, rows + 1]."""
        return self._part("crow_indices", self._pointers, True)

    def col_indices(self) -> Tensor:
        """The column (of blocks) of each entry, [*batch, nnz]."""
        return self._part("col_indices", self._others, True)

    def ccol_indices(self) -> Tensor:
        """Where the entries of each column (of blocks) begin, [*batch, columns + 1]."""
        return self._part("ccol_indices", self._pointers, False)

    def row_indices(self) -> Tensor:
        """The row (of blocks) of each entry, [*batch, nnz]."""
        return self._part("row_indices", self._others, False)

    def _part(self, name: str, part: Tensor, of_rows: bool) -> Tensor:
        if of_rows is not self.compresses_rows:
            kind = "row" if of_rows else "column"
            raise RuntimeError(f"{name} expected sparse {kind} compressed tensor layout but got "
                               f"{title(self._layout)}")  # fmt: skip
        return alias(part)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        names = ("crow_indices", "col_indices") if self.compresses_rows else (
            "ccol_indices", "row_indices")  # fmt: skip
        tensors = (self._pointers, self._others, self._entries)
        data = [numbers_under(part._data) for part in tensors]
        parts = dict(zip((*names, "values"), data, strict=True))
        return printing.format_sparse(parts, self._suffixes(self._nnz()), new_line=False)

    __str__ = __repr__  # type: ignore[assignment]


FIELDS.update(WithEntries.__annotations__ | CompressedTensor.__annotations__)
_shown_as(CompressedTensor, Tensor)


def _not_coordinates(name: str) -> None:
    def refuse(self: CompressedTensor) -> NoReturn:
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got "
                           f"{title(self._layout)}")  # fmt: skip

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raises RuntimeError: places are compressed."
    setattr(CompressedTensor, name, refuse)


for _name in ("indices", "is_coalesced", "coalesce"):
    _not_coordinates(_name)


def compressed_tensor(pointers: Tensor, others: Tensor, entries: Any, size: Any,
                      layout: _Constant) -> CompressedTensor:  # fmt: skip
    """A compressed tensor of these parts, which are not checked."""
    CompressedTensor.exists = True
    result: Any = new(CompressedTensor)
    result._pointers, result._others, result._entries = pointers, others, entries
    result._size = size if type(size) is Size else Size(size)
    result._layout = layout
    return result  # type: ignore[no-any-return]


def at_places(pattern: CompressedTensor, entries: Any, node: str | None = None) -> CompressedTensor:
    """A tensor with the places of another one and new entries."""
    parts = alias(pattern._pointers), alias(pattern._others)
    result = compressed_tensor(*parts, entries, pattern._size, pattern._layout)
    result._title = node
    return result
