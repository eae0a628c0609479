"""`torch.cond`: one of two functions, chosen by a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.utils._pytree import tree_leaves

__all__ = ["cond"]


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any],
         operands: tuple[Any, ...] | list[Any] = ()) -> Any:  # fmt: skip
    """`true_fn(*operands)` where `pred` holds, `false_fn(*operands)` otherwise.

    Only the function that is chosen is called; gradients flow through what it computes.

    Args:
        pred: a number, or a tensor of one element.
        true_fn: a function of the operands.
        false_fn: another one, whose results have the same shapes and types.
        operands: tensors, or trees of tensors.

    Raises:
        RuntimeError: arguments of other kinds.

    >>> import flambeau as torch
    >>> x = torch.tensor([1., 2.])
    >>> torch.cond(x.sum() > 2, lambda x: x + 1, lambda x: x - 1, (x,))
    tensor([2., 3.])
    """
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:  # type: ignore[attr-defined]
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    fine = isinstance(operands, (tuple, list))
    if not fine or not all(isinstance(leaf, Tensor) for leaf in tree_leaves(operands)):
        raise RuntimeError("Expect operands to be a tuple of possibly nested dict/list/tuple that "
                           f"only consists of tensor leaves, but got {operands}.")  # fmt: skip
    return true_fn(*operands) if pred else false_fn(*operands)
