"""What functions of torch do with jagged tensors."""

from __future__ import annotations

from typing import Any

from flambeau._core.tables import entering
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nested._jagged import NestedTensor, made, of_rows, packed, remade
from flambeau.nested._sizes import NestedInt

FORMS = NestedTensor._forms
form = entering(FORMS)
"""Make a function the form of what goes by these names."""


def function(name: str) -> Any:
    """A function of torch, by its name."""
    from flambeau.nn import functional

    return getattr(functional, name, None) or getattr(ops, name)


# ---- reductions


def _reduction(name: str) -> None:
    def reduce(self: NestedTensor, dim: Any = None, keepdim: bool = False, **words: Any) -> Any:
        run = function(name)
        if dim is None or dim == ():
            found = run(packed(self)._values, **words)
            return found.reshape((1,) * self.dim()) if keepdim else found
        return _along(self, name, dim, keepdim, lambda x, dims, keep: run(x, dims, keep, **words))

    FORMS[name] = reduce


def _along(self: NestedTensor, name: str, dim: Any, keepdim: bool, run: Any) -> Any:
    """A reduction over some dims, as far as what is left is a tensor of either kind."""
    one = not isinstance(dim, (tuple, list))
    dims = sorted(self._dim(d) for d in ((dim,) if one else dim))
    inner = [d - 1 for d in dims if d]
    ragged = self._ragged_idx
    if 0 in dims:
        if ragged not in dims:
            raise RuntimeError(f"{name}(): reducing along the batch dimension but not the ragged "
                               "dimension is not supported for nested tensors")  # fmt: skip
        found = run(packed(self)._values, inner, keepdim)
        return found.unsqueeze(0) if keepdim else found
    if ragged not in dims:
        found = run(self._values, inner[0] if one else inner, keepdim)
        before = 0 if keepdim else sum(1 for d in dims if d < ragged)
        return remade(self, found, ragged - before)
    if len(dims) > 1:
        raise RuntimeError(f"{name}(): reducing along a ragged and non-batch dimension is not "
                           "supported for nested tensors")  # fmt: skip
    if self._lengths is not None:
        raise RuntimeError(f"{name}(): reducing across the ragged dimension is not supported for "
                           "non-contiguous nested tensors with holes")  # fmt: skip
    dims_of_row = inner[0] if one else inner
    return ops.stack([run(row, dims_of_row, keepdim) for row in self._rows()])


for _name in "sum mean amax amin any all prod argmax argmin".split():
    _reduction(_name)


def _extreme(name: str) -> None:
    def extreme(self: NestedTensor, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            raise RuntimeError(f"{name}(): only that of all elements is there for NestedTensor; "
                               f"a{name}() takes dims")  # fmt: skip
        return function(name)(packed(self)._values)

    FORMS[name] = extreme


for _name in ("max", "min"):
    _extreme(_name)


def _softmax(name: str) -> None:
    def shares(self: NestedTensor, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
        run = function(name)
        place = self._dim(-1 if dim is None else dim)
        if not place:
            raise RuntimeError(f"{name}(): not supported when reducing across the batch dimension "
                               "for NestedTensor")  # fmt: skip
        kwargs.pop("_stacklevel", None)
        args = () if args == (3,) else args  # a stack level, of which only warnings know
        if place != self._ragged_idx:
            return remade(self, run(self._values, place - 1, *args, **kwargs))
        return of_rows(self, [run(row, place - 1, *args, **kwargs) for row in self._rows()])

    FORMS[name] = shares


for _name in ("softmax", "log_softmax"):
    _softmax(_name)


# ---- layers


def _over_last(name: str) -> None:
    """Functions of the last dims that leave the others alone."""

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(self, NestedTensor):  # an embedding's table may come first
            return remade(args[0], function(name)(self, args[0]._values, *args[1:], **kwargs))
        if self._lengths is not None or self._ragged_idx == self.dim() - 1 > 1:
            raise ValueError(f"NestedTensor {name}: expected input to be a contiguous jagged "
                             "layout NestedTensor")  # fmt: skip
        return remade(self, function(name)(self._values, *args, **kwargs))

    FORMS[name] = run


for _name in ("linear", "layer_norm", "rms_norm", "embedding", "glu", "normalize"):
    _over_last(_name)


@form("matmul", "bmm", "mm", "__matmul__", "__rmatmul__")
def matmul(left: Any, right: Any) -> Any:
    """Products with an ordinary matrix [K, N], or with one for each row [B, K, N]."""
    if isinstance(left, NestedTensor) and not isinstance(right, Tensor | NestedTensor):
        return NotImplemented
    plain = isinstance(left, NestedTensor) and not isinstance(right, NestedTensor)
    if plain and right.ndim == 2 and left._ragged_idx != left.dim() - 1:  # noqa: PLR2004
        return remade(left, left._values @ right)
    if plain and right.ndim == left.dim() and len(right) == len(left):
        pairs = zip(left._rows(), right.unbind(), strict=True)
        return of_rows(left, [row @ matrix for row, matrix in pairs])
    raise RuntimeError(f"matmul(): not supported between inputs of shapes {tuple(left.shape)} and "
                       f"{right.shape}")  # fmt: skip


@form("scaled_dot_product_attention")
def attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: Any = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """Attention of each row to the row of the same number: (B, heads, j, size)."""
    if attn_mask is not None:
        raise ValueError("Masks are not yet supported!")
    if not all(isinstance(one, NestedTensor) for one in (query, key, value)):
        raise ValueError("Expected query, key, and value to all be  nested tensors with the same "
                         "layout.")  # fmt: skip
    attend = function("scaled_dot_product_attention")
    rows = [
        attend(q, k, v, None, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa).transpose(
            -2, -3
        )
        for q, k, v in zip(query._rows(), key._rows(), value._rows(), strict=True)
    ]  # rows of (heads, j, size), joined as (j, heads, size)
    together = of_rows(query, rows, 1)
    return remade(together, together._values.transpose(0, 1), 2)


# ---- other shapes of the same


@form("transpose", "swapaxes", "swapdims")
def transpose(self: NestedTensor, dim0: int, dim1: int) -> NestedTensor:
    """Two dims exchanged, neither of them the batch."""
    dims = list(range(self.dim()))
    first, second = self._dim(dim0), self._dim(dim1)
    if first == second:
        return self
    if not first or not second:
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    dims[first], dims[second] = second, first
    return permute(self, dims)


@form("permute")
def permute(self: NestedTensor, *dims: Any) -> NestedTensor:
    """Dims in another order, the batch first."""
    listed = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    order = [self._dim(d) for d in listed]
    if order[0]:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    values = self._values.permute([d - 1 for d in order[1:]])
    return remade(self, values, order.index(self._ragged_idx))


@form("unbind")
def unbind(self: NestedTensor, dim: int = 0) -> tuple[Any, ...]:
    """Its rows, as views."""
    if self._dim(dim):
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    return tuple(self._rows())


@form("view", "reshape", "_unsafe_view")
def view(self: NestedTensor, *shape: Any) -> NestedTensor:
    """Other dims behind the batch; the ragged one is named by its symbol, or by the first -1."""
    sizes = list(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
    if not sizes or sizes[0] not in (len(self), -1):
        raise RuntimeError(f"view(): cannot view shape {tuple(self.shape)} as {tuple(sizes)}")
    places = [k for k, size in enumerate(sizes) if isinstance(size, NestedInt)]
    if not places:
        places = [k for k, size in enumerate(sizes) if k and size == -1][:1]
    if not places or (isinstance(sizes[places[0]], NestedInt)
                      and sizes[places[0]] != self._symbol):  # fmt: skip
        raise RuntimeError(f"view(): cannot view shape {tuple(self.shape)} as {tuple(sizes)}")
    sizes[places[0]] = self._values.shape[self._ragged_idx - 1]
    return remade(self, self._values.reshape(sizes[1:]), places[0])


@form("unflatten")
def unflatten(self: NestedTensor, dim: int, sizes: Any) -> NestedTensor:
    """A dim split into several."""
    place = _inner(self, "unflatten", dim)
    values = self._values.unflatten(place - 1, sizes)
    more = values.ndim - self._values.ndim
    return remade(self, values, self._ragged_idx + (more if place < self._ragged_idx else 0))


@form("flatten")
def flatten(self: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> NestedTensor:
    """Neighbouring dims as one, none of them the batch or the ragged one."""
    start, end = self._dim(start_dim), self._dim(end_dim)
    if start == end:
        return self
    if not start or start <= self._ragged_idx <= end:
        raise RuntimeError("flatten(): not supported for NestedTensor across the batch or the "
                           "ragged dimension")  # fmt: skip
    less = end - start if start < self._ragged_idx else 0
    return remade(self, self._values.flatten(start - 1, end - 1), self._ragged_idx - less)


@form("unsqueeze")
def unsqueeze(self: NestedTensor, dim: int) -> NestedTensor:
    """A dim of size 1 more, behind the batch."""
    place = dim % (self.dim() + 1)
    if not place:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    behind = 1 if place <= self._ragged_idx else 0
    return remade(self, self._values.unsqueeze(place - 1), self._ragged_idx + behind)


@form("squeeze")
def squeeze(self: NestedTensor, dim: Any = None) -> NestedTensor:
    """Without a dim of size 1."""
    if dim is None:
        raise RuntimeError("squeeze(): For NestedTensors, dim must be specified")
    place = _inner(self, "squeeze", dim)
    values = self._values.squeeze(place - 1)
    less = self._values.ndim - values.ndim if place < self._ragged_idx else 0
    return remade(self, values, self._ragged_idx - less)


def _inner(self: NestedTensor, name: str, dim: int) -> int:
    """A dim that is neither the batch nor ragged."""
    place = self._dim(dim)
    if place in (0, self._ragged_idx):
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim={place}")
    return place


@form("chunk")
def chunk(self: NestedTensor, parts: Any, dim: int = 0) -> tuple[NestedTensor, ...]:
    """Parts along a dim, or of the batch."""
    place = self._dim(dim)
    if place == 0:
        return _chunks_of_rows(self, parts)
    _inner(self, "chunk", place)
    return tuple(remade(self, part) for part in self._values.chunk(parts, place - 1))


def _chunks_of_rows(self: NestedTensor, parts: int) -> tuple[NestedTensor, ...]:
    from flambeau.nested import as_nested_tensor

    step = -(-len(self) // parts)
    rows = self._rows()
    groups = [rows[start : start + step] for start in range(0, len(rows), step)]
    return tuple(as_nested_tensor(group, layout=self.layout) for group in groups)


@form("split")
def split(self: NestedTensor, split_size: Any, dim: int = 0) -> tuple[NestedTensor, ...]:
    """Parts of given sizes along a dim that is neither the batch nor ragged."""
    place = _inner(self, "split", dim)
    return tuple(remade(self, part) for part in self._values.split(split_size, place - 1))


@form("select")
def select(self: NestedTensor, dim: int, index: int) -> Any:
    """A row, or one place along a dim."""
    if not self._dim(dim):
        return unbind(self)[index]
    place = _inner(self, "select", dim)
    less = 1 if place < self._ragged_idx else 0
    return remade(self, self._values.select(place - 1, index), self._ragged_idx - less)


@form("narrow")
def narrow(self: NestedTensor, dim: int, start: int, length: int) -> NestedTensor:
    """A range along a dim that is neither the batch nor ragged."""
    place = _inner(self, "narrow", dim)
    return remade(self, self._values.narrow(place - 1, start, length))


@form("__getitem__")
def getitem(self: NestedTensor, index: Any) -> Any:
    """Rows by number, and slices of dims that are neither the batch nor ragged."""
    listed = list(index) if isinstance(index, tuple) else [index]
    if ... in listed:
        place = listed.index(...)
        rest = self.dim() - (len(listed) - 1 - listed.count(None))
        listed[place : place + 1] = [slice(None)] * rest
    first, *others = listed
    if isinstance(first, int):
        found = unbind(self)[first]
        return found[tuple(others)] if others else found
    if not _is_whole(first):
        raise RuntimeError("slice(): not supported for NestedTensor on dim=0")
    ragged = self._ragged_idx
    if len(others) >= ragged and not _is_whole(others[ragged - 1]):
        raise RuntimeError(f"slice(): not supported for NestedTensor on dim={ragged}")
    less = sum(1 for one in others[: ragged - 1] if isinstance(one, int))
    return remade(self, self._values[tuple(others)], ragged - less)


def _is_whole(index: Any) -> bool:
    return isinstance(index, slice) and index == slice(None)


@form("cat", "concat", "concatenate")
def cat(tensors: Any, dim: int = 0) -> NestedTensor:
    """Tensors of the same rows, one behind the other along a dim of each row."""
    first = next(one for one in tensors if isinstance(one, NestedTensor))
    place = first._dim(dim)
    if place in (0, first._ragged_idx) or not all(isinstance(t, NestedTensor) for t in tensors):
        raise RuntimeError(f"cat(): not supported for NestedTensor on dim={place}")
    return remade(first, ops.cat([one._values for one in tensors], place - 1))


@form("stack")
def stack(tensors: Any, dim: int = 0) -> NestedTensor:
    """Tensors of the same rows beside each other along a new dim of each row."""
    if dim == 0:
        raise RuntimeError("stack(): not supported for NestedTensor on dim=0")
    return cat([unsqueeze(one, dim) for one in tensors], dim)


@form("expand")
def expand(self: NestedTensor, *sizes: Any) -> NestedTensor:
    """Dims of size 1 repeated; the batch and the ragged dim stay as they are."""
    listed = list(sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes)
    listed[self._ragged_idx] = -1
    return remade(self, self._values.expand(listed[1:]))


@form("to")
def to(self: NestedTensor, *args: Any, **kwargs: Any) -> NestedTensor:
    """Another dtype or device."""
    values = self._values.to(*args, **kwargs)
    if values is self._values:
        return self
    if values.device == self._values.device:
        return remade(self, values)
    offsets = self._offsets.to(values.device)
    lengths = None if self._lengths is None else self._lengths.to(values.device)
    return made(values, offsets, lengths, self._ragged_idx, self._bounds)


@form("equal")
def equal(self: Any, other: Any) -> bool:
    """Whether both have the same rows with the same elements."""
    if not (isinstance(self, NestedTensor) and isinstance(other, NestedTensor)):
        return False
    rows, others = self._rows(), other._rows()
    return len(rows) == len(others) and all(map(ops.equal, rows, others))


@form("numpy")
def no_array(self: NestedTensor, *args: Any, **kwargs: Any) -> Any:
    """Refused: rows of different sizes are no array."""
    raise RuntimeError(".numpy() is not supported for tensor subclasses.")


@form("tolist")
def no_list(self: NestedTensor) -> Any:
    """Refused, as it is for other subclasses."""
    raise RuntimeError(".tolist() is not supported for tensor subclasses, got NestedTensor")
