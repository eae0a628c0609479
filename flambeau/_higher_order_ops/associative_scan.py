"""`torch._higher_order_ops.associative_scan`: running results of any associative function.

Pairs of neighbours are joined first, the scan of these is half as long, and what lies between is
joined with the result before it: some 2 log2(n) calls for n slices (Blelloch, "Prefix sums and
their applications", 1990).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.func import vmap
from flambeau.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["associative_scan"]

MODES = ("pointwise", "generic")


def associative_scan(combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int,
                     reverse: bool = False, combine_mode: str = "pointwise") -> Any:  # fmt: skip
    """`y[0] = x[0], y[k] = combine_fn(y[k - 1], x[k])` along a dim, in any order of the calls.

    combine_fn: an associative function of two slices, trees of tensors like `xs` without the dim;
        it gives such a tree, of the same shapes.
    xs: a tensor, or a tree of tensors of one size along `dim`.
    reverse: whether it begins at the end.
    combine_mode: "generic" for any function; "pointwise" promises one that works element by
        element, and is for tensors on a GPU.

    Gives a tree like `xs`. Gradients flow through it.

    Raises:
        ValueError: arguments of other kinds, no elements along the dim, or "pointwise" on the CPU.
        RuntimeError: the function gives another tree, or other shapes, than it is given.

    >>> import flambeau as torch
    >>> from flambeau._higher_order_ops.associative_scan import associative_scan
    >>> x = torch.tensor([1., 2., 3.])
    >>> associative_scan(lambda a, b: a * b, x, 0, combine_mode="generic")
    tensor([1., 2., 6.])
    """
    leaves, tree = tree_flatten(xs)
    _check(combine_fn, leaves, dim, reverse, combine_mode)
    dims = max(leaves[0].ndim, 1)
    if not -dims <= dim < dims:
        raise IndexError("Dimension out of range (expected to be in range of "
                         f"[{-dims}, {dims - 1}], but got {dim})")  # fmt: skip
    dim %= dims
    if any(leaf.ndim <= dim or not leaf.shape[dim] for leaf in leaves):
        raise ValueError("All xs leaves must at least have 'dim' number of dimensions and scan "
                         "dimension > 0")  # fmt: skip
    slices = [ops.movedim(leaf, dim, 0) for leaf in leaves]
    if any(len(leaf) != len(slices[0]) for leaf in slices):
        raise RuntimeError("All xs leaves must have the same size along the scan dimension")
    if reverse:
        slices = [ops.flip(leaf, [0]) for leaf in slices]

    def joined(left: list[Any], right: list[Any]) -> list[Any]:
        found = vmap(combine_fn)(tree_unflatten(left, tree), tree_unflatten(right, tree))
        parts, made = tree_flatten(found)
        if made != tree:
            raise RuntimeError(f"combine_fn gives {made}, where it is given {tree}")
        for part, own in zip(parts, left, strict=True):
            if part.shape != own.shape:
                raise RuntimeError(f"combine_fn gives slices of {list(part.shape[1:])}, where it "
                                   f"is given {list(own.shape[1:])}")  # fmt: skip
        return list(parts)

    found = _scan(joined, slices)
    if reverse:
        found = [ops.flip(leaf, [0]) for leaf in found]
    return tree_unflatten([ops.movedim(leaf, 0, dim) for leaf in found], tree)


def _check(combine_fn: Any, leaves: list[Any], dim: Any, reverse: Any, combine_mode: Any) -> None:
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if combine_mode not in MODES:
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got "
                         f"{combine_mode}")  # fmt: skip
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(f"All xs leaves must be a Tensor but got {type(leaf)}")
    if combine_mode == "pointwise" and any(leaf.device.type == "cpu" for leaf in leaves):
        raise ValueError("For combine_mode='pointwise', all input tensors need to be on CUDA or "
                         "XPU")  # fmt: skip


Joined = Callable[[list[Any], list[Any]], list[Any]]


def _scan(joined: Joined, slices: list[Any]) -> list[Any]:
    """The scan along the first dim."""
    count = len(slices[0])
    if count == 1:
        return slices
    pairs = joined([x[: count - 1 : 2] for x in slices], [x[1::2] for x in slices])
    odd = _scan(joined, pairs)  # the results at 1, 3, 5, ...
    even = [x[:1] for x in slices]
    if count > 2:  # noqa: PLR2004
        before = [x[: (count - 1) // 2] for x in odd]
        later = joined(before, [x[2::2] for x in slices])
        even = [ops.cat([first, more]) for first, more in zip(even, later, strict=True)]
    return [_interleaved(a, b) for a, b in zip(even, odd, strict=True)]


def _interleaved(even: Any, odd: Any) -> Any:
    """even[0], odd[0], even[1], ..."""
    both = ops.flatten(ops.stack([even[: len(odd)], odd], 1), 0, 1)
    return both if len(even) == len(odd) else ops.cat([both, even[-1:]])
