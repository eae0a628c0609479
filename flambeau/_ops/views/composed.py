"""Views made of other views: `narrow`, `flatten`, `movedim`, `x.T`, and copies of views."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

from flambeau._core import modes
from flambeau._core.doc_text import with_example
from flambeau._core.layout import contiguous_format
from flambeau._core.settings import warn_user
from flambeau._ops.table.binder import explained, is_integer, plain_type_name, require_tensor
from flambeau._ops.table.bits import is_unwatched, of_memory
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.namespace import known_as, ops
from flambeau._ops.table.op import composite
from flambeau._ops.table.outputs import EXACT, write_out
from flambeau._ops.views.basic import transpose
from flambeau._ops.views.strided import renamed
from flambeau._tensor.bits import BitTensor
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.graph import OutputNode


@composite("view_as(Tensor(a) self, Tensor other) -> Tensor(a)", bare=True, function=False)
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """`view` in the shape of another tensor.

    >>> import flambeau as torch
    >>> torch.arange(4).view_as(torch.ones(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return ops.view(self, _shape_of("view_as", other))  # type: ignore[no-any-return]


@composite(
    "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    bare=True,
    function=False,
)
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """`reshape` in the shape of another tensor.

    >>> import flambeau as torch
    >>> torch.arange(4).reshape_as(torch.ones(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return ops.reshape(self, _shape_of("reshape_as", other))  # type: ignore[no-any-return]


@composite(
    "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", regular=True, bare=True, function=False
)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of another tensor.

    >>> import flambeau as torch
    >>> torch.tensor([[1], [2]]).expand_as(torch.ones(2, 3))
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return ops.expand(self, _shape_of("expand_as", other))  # type: ignore[no-any-return]


def _shape_of(name: str, other: Any) -> tuple[int, ...]:
    require_tensor(name, "other", 1, other)
    return other._data.shape


@composite("narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)", regular=True)
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` positions along a dim from `start` on.

    >>> import flambeau as torch
    >>> torch.narrow(torch.arange(6), 0, 1, 3)
    tensor([1, 2, 3])
    """
    data = input._data
    if isinstance(start, Tensor):
        if start._data.ndim or start._data.dtype.kind not in "iu":
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        start = int(start._data)
    if data.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = data.shape[wrap_dim(dim, data.ndim)]
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but "
                         f"got {start})")  # fmt: skip
    if start < 0:
        start += size
    if start > size - length:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return ops.slice(input, dim, start, start + length)  # type: ignore[no-any-return]


@composite(
    "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
    regular=True,
    bare=True,
)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dims from `start_dim` to `end_dim` as one; the tensor itself if that is one dim.

    >>> import flambeau as torch
    >>> torch.flatten(torch.ones(2, 3, 4), 1).shape
    torch.Size([2, 12])
    """
    try:
        shape = input._data.shape
        ndim = len(shape)
        first, last = wrap_dim(start_dim, ndim), wrap_dim(end_dim, ndim)
    except (AttributeError, TypeError) as error:
        raise explained(flatten, (input, start_dim, end_dim), error) from None
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if ndim == 0:
        return ops.reshape(input, (1,))  # type: ignore[no-any-return]
    if first == last:
        return input
    joined = input._data.size if last - first == ndim - 1 else prod(shape[first : last + 1])
    return ops.reshape(input, (*shape[:first], joined, *shape[last + 1 :]))  # type: ignore[no-any-return]


@composite("unflatten.int(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)")
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """One dim as several, of the given sizes (one may be -1).

    >>> import flambeau as torch
    >>> torch.unflatten(torch.ones(6, 2), 0, (2, 3)).shape
    torch.Size([2, 3, 2])
    """
    shape = input._data.shape
    if not is_integer(dim):
        raise TypeError(
            f"unflatten(): argument 'dim' (position 1) must be int, not {plain_type_name(dim)}"
        )
    dim = wrap_dim(int(dim), len(shape))
    for position, size in enumerate(sizes):
        if not is_integer(size):
            raise TypeError("unflatten(): argument 'sizes' (position 2) must be tuple of ints, "
                            f"but found element of type {type(size).__name__} at pos "
                            f"{position}")  # fmt: skip
    sizes = [int(size) for size in sizes]
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not shape or sizes.count(-1) > 1:
        reason = "only one dimension can be inferred" if shape else "tensor has no dims"
        raise RuntimeError(f"unflatten got an unexpected error:\n{reason}")
    known = prod([size for size in sizes if size != -1])
    fits = known == shape[dim] if -1 not in sizes else known and shape[dim] % known == 0
    if not fits:
        raise RuntimeError(
            f"unflatten: Provided sizes {sizes} don't multiply up to the size of dim {dim} "
            f"({shape[dim]}) in the input tensor"
        )
    if -1 in sizes:
        sizes[sizes.index(-1)] = shape[dim] // known
    return ops.view(input, (*shape[:dim], *sizes, *shape[dim + 1 :]))  # type: ignore[no-any-return]


@composite("ravel(Tensor(a) self) -> Tensor(a)", bare=True)
def ravel(input: Tensor) -> Tensor:
    """All elements in one dim: a view where possible.

    >>> import flambeau as torch
    >>> torch.ravel(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    require_tensor("ravel", "input", 1, input)
    return ops.view(input.contiguous(), (-1,))  # type: ignore[attr-defined, no-any-return]


@composite("movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)")
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Put dims at other places; the rest keep their order.

    >>> import flambeau as torch
    >>> torch.movedim(torch.ones(2, 3, 4), 0, -1).shape
    torch.Size([3, 4, 2])
    """
    if is_integer(source) != is_integer(destination):
        raise TypeError(
            "movedim() received an invalid combination of arguments - got "
            f"({type(source).__name__}, {type(destination).__name__}), but expected one of:\n"
            " * (int source, int destination)\n * (tuple of ints source, tuple of ints destination)"
        )
    if is_integer(source):
        source, destination = [int(source)], [int(destination)]
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should "
            f"contain the same number of dims as destination ({list(destination)} dims)"
        )
    ndim = input.ndim
    sources = [wrap_dim(dim, ndim) for dim in source]
    destinations = [wrap_dim(dim, ndim) for dim in destination]
    _check_no_repeat("source", sources, source)
    _check_no_repeat("destination", destinations, destination)
    if ndim == 0:
        return ops.alias(input)  # type: ignore[no-any-return]
    rest = iter([dim for dim in range(ndim) if dim not in sources])
    places = dict(zip(destinations, sources, strict=True))
    order = [places[dim] if dim in places else next(rest) for dim in range(ndim)]
    return ops.permute(input, order)  # type: ignore[no-any-return]


def _check_no_repeat(name: str, wrapped: list[int], given: Any) -> None:
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")


@composite("moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)")
def moveaxis(input: Tensor, source: Any, destination: Any) -> Tensor:
    """`movedim` by NumPy's name.

    The sizes move with their dims.

    >>> import flambeau as torch
    >>> torch.moveaxis(torch.zeros(2, 3, 4), 0, -1).shape
    torch.Size([3, 4, 2])
    """
    return movedim.body(input, source, destination)  # type: ignore[no-any-return]


@composite(
    "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
    namespace="linalg",
    public="diagonal",
    method=False,
)
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """`diagonal` of the last two dims unless told otherwise.

    >>> import flambeau as torch
    >>> torch.linalg.diagonal(torch.ones(5, 3, 3)).shape
    torch.Size([5, 3])
    """
    return ops.diagonal(A, offset, dim1, dim2)  # type: ignore[no-any-return]


# ---- transposes as properties

NUMBERS = {
    "T": "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.",
    "mT": "Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases.",
    "H": "Tensor.H is deprecated on 0-D tensors. Consider using x.conj().",
    "mH": "Tensor.mH is deprecated on 0-D tensors. Consider using x.conj().",
    "adjoint()": "adjoint() is deprecated on 0-D tensors. Consider using x.conj().",
}


def _warn_number(name: str) -> None:
    warn_user(NUMBERS[name])


def _reversed(self: Tensor) -> Tensor:
    """All dims in reverse order.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).T.shape
    torch.Size([3, 2])
    """
    data = self._data if self._stored is None else self._stored
    ndim = data.ndim
    if ndim == 2:
        return ops.permute(self, (1, 0))  # type: ignore[no-any-return]
    if ndim == 0:
        _warn_number("T")
    else:
        warn_user(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
            "deprecated and it will throw an error in a future release. Consider `x.mT` to "
            "transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to "
            "reverse the dimensions of a tensor."
        )
    return ops.permute(self, tuple(range(ndim))[::-1])  # type: ignore[no-any-return]


def _swapped(self: Tensor, name: str) -> Tensor:
    """The last two dims exchanged."""
    data = self._data if self._stored is None else self._stored
    ndim = data.ndim
    if ndim >= 2:
        return ops.transpose(self, -2, -1)  # type: ignore[no-any-return]
    if ndim == 0:
        _warn_number(name)
        return self
    raise RuntimeError(f"tensor.{name} is only supported on matrices or batches of matrices. Got "
                       f"{ndim}-D tensor.")  # fmt: skip


def _conjugated(tensor: Tensor) -> Any:
    return ops.conj(tensor) if tensor.is_complex() else tensor  # type: ignore[attr-defined]


def _matrix_adjoint(self: Tensor) -> Any:
    """The conjugate transpose of a matrix.

    >>> import flambeau as torch
    >>> torch.tensor([[1j, 2.0]]).H
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    if self.ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D "
            "tensor. For batches of matrices, consider using tensor.mH"
        )
    return _conjugated(_swapped(self, "H"))


Tensor.T = property(_reversed)  # type: ignore[attr-defined]
Tensor.mT = property(  # type: ignore[attr-defined]
    lambda self: _swapped(self, "mT"),
    doc=with_example(
        "The last two dims exchanged: shape (*, m, n) becomes (*, n, m), without a copy.",
        "torch.ones(5, 2, 3).mT.shape",
        "torch.Size([5, 3, 2])",
    ),
)
Tensor.H = property(_matrix_adjoint)  # type: ignore[attr-defined]
Tensor.mH = property(  # type: ignore[attr-defined]
    lambda self: _conjugated(_swapped(self, "mH")),
    doc=with_example(
        "The conjugate transpose of matrices: shape (*, m, n) becomes (*, n, m).",
        "torch.tensor([[1j, 2.0]]).mH",
        "tensor([[0.-1.j],\n        [2.-0.j]])",
    ),
)


def _quickly(name: str, ranks: range) -> property:
    """A property of tensors with a bit: their transpose at once, where nothing looks on."""
    transposed = of_memory(transpose)

    def quick(self: Any) -> Any:
        if self._stored.ndim not in ranks or not is_unwatched(self):
            return getattr(super(BitTensor, self), name)
        make = transposed.function or transposed
        result = make(self, -2, -1)
        return result.conj() if "H" in name else result

    return property(quick)


MATRIX, MATRICES = range(2, 3), range(2, 65)
BIT_TENSOR: Any = BitTensor
BIT_TENSOR.T, BIT_TENSOR.mT = _quickly("T", MATRIX), _quickly("mT", MATRICES)
BIT_TENSOR.H, BIT_TENSOR.mH = _quickly("H", MATRIX), _quickly("mH", MATRICES)


@composite("adjoint(Tensor(a) self) -> Tensor(a)")
def adjoint(input: Tensor) -> Any:
    """The last two dims exchanged, conjugated.

    >>> import flambeau as torch
    >>> torch.adjoint(torch.tensor([[1 + 2j, 0], [3j, 4]]))
    tensor([[1.-2.j, 0.-3.j],
            [0.-0.j, 4.-0.j]])
    """
    return _conjugated(_swapped(input, "adjoint()"))


# ---- copies

COPIES = {
    "alias": ("torch.tensor([1, 2])", "tensor([1, 2])"),
    "as_strided": ("torch.arange(4), (2,), (3,)", "tensor([0, 3])"),
    "diagonal": ("torch.tensor([[1, 2], [3, 4]])", "tensor([1, 4])"),
    "expand": ("torch.tensor([1, 2]), (2, 2)", "tensor([[1, 2],\n        [1, 2]])"),
    "permute": ("torch.tensor([[1, 2]]), (1, 0)", "tensor([[1],\n        [2]])"),
    "select": ("torch.tensor([[1, 2], [3, 4]]), 0, 1", "tensor([3, 4])"),
    "slice": ("torch.arange(4), 0, 1, 3", "tensor([1, 2])"),
    "split": ("torch.arange(4), 2", "(tensor([0, 1]), tensor([2, 3]))"),
    "split_with_sizes": ("torch.arange(4), [1, 3]", "(tensor([0]), tensor([1, 2, 3]))"),
    "squeeze": ("torch.tensor([[1, 2]])", "tensor([1, 2])"),
    "t": ("torch.tensor([[1, 2], [3, 4]])", "tensor([[1, 3],\n        [2, 4]])"),
    "transpose": ("torch.tensor([[1, 2]]), 0, 1", "tensor([[1],\n        [2]])"),
    "unbind": ("torch.tensor([1, 2])", "(tensor(1), tensor(2))"),
    "unfold": ("torch.arange(4), 0, 2, 2", "tensor([[0, 1],\n        [2, 3]])"),
    "unsqueeze": ("torch.tensor([1, 2]), 0", "tensor([[1, 2]])"),
    "view": ("torch.arange(4), (2, 2)", "tensor([[0, 1],\n        [2, 3]])"),
    "view_as_complex": ("torch.tensor([1.0, 2.0])", "tensor(1.+2.j)"),
    "view_as_real": ("torch.tensor([1 + 2j])", "tensor([[1., 2.]])"),
}
"""Views that have a form `<name>_copy`, which returns new memory: arguments, what they give."""


DERIVED = ("split", "split_with_sizes", "unbind", "view_as_complex")
"""Those whose copies have a formula in PyTorch for writing elsewhere."""


IMPROVE = (
    "(Could this error message be improved?  If so, please report an enhancement request to "
    "PyTorch.)"
)


def _copy_of_view(name: str, given: str, printed: str) -> None:
    def function(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        if "axis" in kwargs:  # which `split` does not take
            kwargs["dim"] = kwargs.pop("axis")
        result = _view_known_as(name, f"{name}_copy")(input, *args, **kwargs)
        if isinstance(result, tuple):
            result = tuple([_copied(part) for part in result])
        else:
            result = _copied(result)
        return result if out is None else write_out(function_row, out, result)

    function.__name__ = f"{name}_copy"
    function.__doc__ = with_example(
        f"`{name}` as a copy: the same shape, in new memory.",
        f"torch.{name}_copy({given})",
        printed,
    )
    refuser = "" if name in DERIVED else f"aten::{name}_copy"
    row = composite(f"{name}_copy(Tensor self) -> Tensor", method=False, out_type=EXACT,
                    out_writer=refuser, bare=name == "t")  # fmt: skip
    function_row = row(function)


@cache
def _view_known_as(name: str, called: str) -> Any:
    return known_as(getattr(ops, name), name, called)


def _copied(view: Tensor, title: str = "") -> Tensor:
    """A view as new memory: its node becomes that of the copy, and is called so."""
    node = view._node
    if node is None or not modes.grad.enabled:
        return ops.clone(view, memory_format=contiguous_format)  # type: ignore[no-any-return]
    modes.grad.enabled = False
    try:
        result = ops.clone(view, memory_format=contiguous_format)
    finally:
        modes.grad.enabled = True
    source = node.source if isinstance(node, OutputNode) else node
    if not source.title.endswith("_copy"):  # outputs share a node
        renamed(source, title or f"{source.title}_copy")
    result._node, result._requires_grad = node, True
    return result  # type: ignore[no-any-return]


@composite("narrow_copy(Tensor self, int dim, int start, int length) -> Tensor",
           out_type=f"Expected self.dtype() == output.dtype() to be true, but got false.  {IMPROVE}"
           )  # fmt: skip
def narrow_copy(input: Tensor, dim: int, start: int, length: int, *, out: Any = None) -> Any:
    """`narrow` as a copy.

    The shape of `input`, but for `length` along `dim`.

    >>> import flambeau as torch
    >>> torch.narrow_copy(torch.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    shape = input._data.shape
    if shape and dim >= len(shape):
        raise RuntimeError("Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but "
                           f"got false.  {IMPROVE}")  # fmt: skip
    if shape and length < 0:
        size = shape[wrap_dim(dim, len(shape))]
        if not -size <= start <= size:
            ops.narrow(input, dim, start, 0)  # which says so
        start += size if start < 0 else 0
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    result = _copied(ops.narrow(input, dim, start, length), "NarrowCopyBackward0")
    return result if out is None else write_out(narrow_copy, out, result)


for _name, _example in COPIES.items():
    _copy_of_view(_name, *_example)
