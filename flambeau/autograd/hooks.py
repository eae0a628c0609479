"""The gradient side of a tensor: `grad`, `retain_grad`, and hooks."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from flambeau._tensor.tensor import Tensor, method
from flambeau.autograd.graph import Node, RemovableHandle, add_hook
from flambeau.autograd.history import edge_of

NOT_LEAF = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
    "attribute won't be populated during autograd.backward(). If you indeed want the .grad field "
    "to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you "
    "access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See "
    "github.com/pytorch/pytorch/pull/30531 for more informations."
)


def _get_grad(self: Tensor) -> Tensor | None:
    """The gradient that backward passes have added up, or None."""
    if self._grad is None and self._node is not None and self._retain is None:
        warnings.warn(NOT_LEAF, UserWarning, stacklevel=2)
    return self._grad


def _set_grad(self: Tensor, grad: Tensor | None) -> None:
    if grad is not None:
        _check_grad(self, grad)
    self._grad = grad


def _check_grad(tensor: Tensor, grad: Any) -> None:
    if not isinstance(grad, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type "
                        f"{type(grad).__name__}")  # fmt: skip
    if grad is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    if grad._data.dtype != tensor._data.dtype:
        raise RuntimeError(f"assigned grad has data of a different type than the tensor: expected "
                           f"{tensor.dtype}, got {grad.dtype}")  # fmt: skip
    if grad._data.shape != tensor._data.shape:
        raise RuntimeError("assigned grad has data of a different size")


def _del_grad(self: Tensor) -> None:
    self._grad = None


Tensor.grad = property(_get_grad, _set_grad, _del_grad)  # type: ignore[attr-defined]


class Retain:
    """The hook behind `retain_grad`: keeps the gradient of a non-leaf, also after rewrites."""

    __slots__ = ("handle", "ref")

    def __init__(self, tensor: Tensor) -> None:
        self.ref = weakref.ref(tensor)
        self.handle = add_hook(tensor._node, "retain", self)

    def __call__(self, grad: Tensor) -> None:
        tensor = self.ref()
        if tensor is None:
            return
        if tensor._grad is None:
            tensor._grad = grad.clone() if grad._root is not None else grad  # type: ignore[attr-defined]
        else:
            tensor._grad = tensor._grad + grad  # type: ignore[operator]

    def move(self, tensor: Tensor, node: Node) -> None:
        """An in-place operation gave the tensor a new node: follow it."""
        self.handle.remove()
        self.handle = add_hook(node, "retain", self)


@method
def retain_grad(self: Tensor) -> None:
    """Fill `.grad` of this non-leaf tensor in backward too."""
    if not self.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    edge = edge_of(self)
    if isinstance(edge, Tensor) or self._retain is not None:
        return
    self._retain = Retain(self)


def _retains_grad(self: Tensor) -> bool:
    """Whether `retain_grad` was called on this non-leaf tensor."""
    return self._retain is not None


Tensor.retains_grad = property(_retains_grad)  # type: ignore[attr-defined]


@method
def register_hook(self: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(grad)` when the gradient of this tensor is known; it may return another."""
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    return add_hook(edge_of(self), "tensor", hook)


@method
def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(tensor)` after the gradient of this leaf has been accumulated."""
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return add_hook(self, "accumulated", hook)


class MultiHandle:
    """Removes the hooks on several tensors together."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Take all hooks away."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> MultiHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> MultiHandle:
    """Call `fn` once the gradients of all `tensors` are known, or with mode="any" at the first.

    "all": `fn` gets a list of gradients (None where a tensor received none); "any": one gradient.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    collected: list[Any] = [None] * len(tensors)
    seen = [0]

    def hook_for(position: int) -> Callable[[Tensor], None]:
        def hook(grad: Tensor) -> None:
            if mode == "any":
                if not seen[0]:
                    seen[0] = 1
                    fn(grad)
                return
            collected[position] = grad
            seen[0] += 1
            if seen[0] == len(tensors):
                grads = list(collected)
                collected[:] = [None] * len(tensors)
                seen[0] = 0
                fn(grads)

        return hook

    handles = tuple(
        add_hook(edge_of(tensor), "tensor", hook_for(position))
        for position, tensor in enumerate(tensors)
    )
    return MultiHandle(handles)
