"""The old types of sparse tensors: `torch.sparse.FloatTensor` and its like."""

from __future__ import annotations

from typing import Any

from flambeau._core import dtype as dt
from flambeau._core import layout as lay
from flambeau._core.device import CPU, check_available
from flambeau._core.layout import Size
from flambeau._core.settings import warn_once
from flambeau._ops.factories.typed import NAMES, TypedMeta
from flambeau._ops.sparse.constructors import without_entries
from flambeau._ops.table.namespace import ops
from flambeau._tensor.sparse import SparseTensor
from flambeau._tensor.tensor import Tensor

ONLY_SIZES = (
    "torch.sparse.SparseTensor(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() "
    "or construct a strided tensor and convert it to sparse via to_sparse."
)
FORMS = (
    "expected one of:\n"
    " * (*, torch.device device = None)\n"
    " * (Tensor indices, Tensor values, *, torch.device device = None)\n"
    " * (Tensor indices, Tensor values, tuple of ints size, *, torch.device device = None)\n"
    " * (tuple of ints size, *, torch.device device = None)\n"
)


class SparseTypedMeta(TypedMeta):
    """Types such as `torch.sparse.FloatTensor`: called, they make sparse tensors; `isinstance`
    asks for the layout and the element type."""

    layout = lay.sparse_coo
    is_sparse = True

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        check_available(device or CPU)
        return legacy_sparse(cls.element, args)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, SparseTensor) and instance.dtype is cls.element

    def __repr__(cls) -> str:
        return f"<class 'torch.sparse.{cls.__name__}'>"


def legacy_sparse(element: dt.dtype, args: tuple[Any, ...]) -> SparseTensor:
    """Nothing, sizes, a Size, or places and values with or without a size.

    Raises:
        TypeError: something else was given.
    """
    if not args:
        _warn("()", "((0,), dtype=)")
        return without_entries((0,), element)
    if isinstance(args[0], Tensor):
        if len(args) in (2, 3) and isinstance(args[1], Tensor):
            given = "indices, values, shape" if len(args) > 2 else "indices, values"  # noqa: PLR2004
            _warn(f"({given}, *, device=)", f"({given}, dtype=, device=)")
            return ops.sparse_coo_tensor(*args)  # type: ignore[no-any-return]
        given = ", ".join(type(value).__name__ for value in args)
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({given}), but {FORMS}"
        )
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        if not isinstance(args[0], Size):
            raise TypeError(ONLY_SIZES)
        args = tuple(args[0])
    _warn("(shape, *, device=)", "(shape, dtype=, device=)")
    return without_entries(args, element)


def _warn(old: str, new: str) -> None:
    """Torch's word against these types, once for each form."""
    warn_once(f"torch.sparse.SparseTensor{old} is deprecated.  Please use "
              f"torch.sparse_coo_tensor{new}.", 4)  # fmt: skip


def _sparse_type(name: str, element: dt.dtype) -> SparseTypedMeta:
    doc = f"Makes and recognises sparse tensors of {element}."
    members = {"element": element, "__module__": "torch.sparse", "__doc__": doc}
    return SparseTypedMeta(name, (), members)


TYPES = {
    name: _sparse_type(name, element)
    for name, element in NAMES.items()
    if element is not dt.bool_ and not element.is_complex
}
"""The types by name; PyTorch has none of masks and complex numbers."""
