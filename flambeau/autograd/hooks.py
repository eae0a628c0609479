"""The gradient side of a tensor: `grad`, `retain_grad`, and hooks."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from flambeau._core import modes
from flambeau._core.dtype import dtype
from flambeau._core.layout import contiguous_format
from flambeau._tensor.tensor import Tensor, method
from flambeau.autograd import engine
from flambeau.autograd.graph import Node, OutputNode, add_hook, tools
from flambeau.autograd.handles import RemovableHandle
from flambeau.autograd.history import UNRECORDED, edge_of

NOT_LEAF = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
    "attribute won't be populated during autograd.backward(). If you indeed want the .grad field "
    "to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you "
    "access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See "
    "github.com/pytorch/pytorch/pull/30531 for more information."
)

WRONG_DTYPE = (
    "attempting to assign a gradient with dtype '{given}' to a tensor with grad_dtype '{wanted}'. "
    "The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set "
    "the tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. Set "
    "grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break "
    "downstream systems that assume they match."
)


def _get_grad(self: Tensor) -> Tensor | None:
    """The gradient that backward passes have added up, of this tensor's shape; at first None.

    >>> import flambeau as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> (3 * x).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    """
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
    if grad.device is not tensor.device:
        have, want = grad.device.type, tensor.device.type
        raise RuntimeError(f"attempting to assign a gradient with device type '{have}' to a tensor "
                           f"with device type '{want}'. Please ensure that the gradient and the "
                           "tensor are on the same device")  # fmt: skip
    wanted = tensor.dtype if tensor._grad_dtype is False else tensor._grad_dtype
    if wanted is not None and grad.dtype is not wanted:
        given = grad.dtype.c_name
        raise RuntimeError(WRONG_DTYPE.format(given=given, wanted=wanted.scalar_name))
    if grad.shape != tensor.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(grad.shape)}' to a tensor of "
            f"size '{list(tensor.shape)}'. Please ensure that the gradient and the tensor "
            "are the same size"
        )


def _del_grad(self: Tensor) -> None:
    self._grad = None


Tensor.grad = property(_get_grad, _set_grad, _del_grad)  # type: ignore[attr-defined]


def _get_grad_dtype(self: Tensor) -> dtype | None:
    """The element type of the gradients that this leaf keeps; None: of any.

    It is the leaf's own until it is set. Gradients that arrive are converted to it.

    >>> import flambeau as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> x.grad_dtype = torch.float64
    >>> (3 * x).sum().backward()
    >>> x.grad
    tensor([3., 3.], dtype=torch.float64)
    """
    if not self.is_leaf:  # type: ignore[attr-defined]
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return self.dtype if self._grad_dtype is False else self._grad_dtype


def _set_grad_dtype(self: Tensor, wanted: Any) -> None:
    if not self.is_leaf:  # type: ignore[attr-defined]
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if wanted is not None and not isinstance(wanted, dtype):
        found = type(wanted).__name__
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {found}")
    known = self._grad
    if wanted is not None and known is not None and known.dtype is not wanted:
        raise RuntimeError(
            f"Cannot set grad_dtype to '{wanted.scalar_name}' because there is already a gradient "
            f"with dtype '{known.dtype.c_name}'. Please clear the gradient (.grad = None) before "
            "changing grad_dtype, or ensure the new grad_dtype matches the existing gradient's "
            "dtype."
        )
    self._grad_dtype = wanted


def _hooks_of(tensor: Tensor, kind: str) -> Any:
    """The table of a tensor's hooks of a kind; None if it never had one."""
    node = tensor._node
    if node is None:
        return (tensor._hooks or {}).get(kind)
    found = (getattr(node, "source", node).hooks or {}).get(kind)
    if found is None or type(node) is not OutputNode:
        return found
    own = {key: of.hook for key, of in found.items() if of.index == node.index}
    return OrderedDict(own) if own else None


def _no_deletion(text: str) -> Callable[[Tensor], None]:
    def refuse(self: Tensor) -> None:
        raise RuntimeError(f"Deletion of {text}")

    return refuse


Tensor._grad_fn = property(  # type: ignore[attr-defined]
    lambda self: self.grad_fn, None, _no_deletion("_grad_fn not allowed. Detach tensor instead!")
)


def _set_backward_hooks(self: Tensor, hooks: Any) -> None:
    """Put the hooks of a table in the place of those that a tensor has; None takes them away."""
    node = self._node
    if type(node) is not OutputNode:
        owner, field = (self, "_hooks") if node is None else (node, "hooks")
        kinds = getattr(owner, field) or {}
        kinds.pop("tensor", None)
        if hooks is not None:
            kinds["tensor"] = hooks  # the very table, which may be added to
        setattr(owner, field, kinds)
        modes.watch.filled = modes.watch.filled or node is None
        return
    known = (node.source.hooks or {}).get("tensor", {})
    for key, hook in list(known.items()):
        if hook.index == node.index:
            del known[key]
    for hook in (hooks or {}).values():
        add_hook(node, "tensor", hook)


Tensor._backward_hooks = property(  # type: ignore[attr-defined]
    lambda self: _hooks_of(self, "tensor"), _set_backward_hooks,
    _no_deletion("_backwards_hooks not allowed!"),
)  # fmt: skip
Tensor._post_accumulate_grad_hooks = property(  # type: ignore[attr-defined]
    lambda self: _hooks_of(self, "accumulated")
)
Tensor.grad_dtype = property(_get_grad_dtype, _set_grad_dtype)  # type: ignore[attr-defined]


class Retain:
    """The hook behind `retain_grad`: keeps the gradient of a non-leaf, also after rewrites."""

    __slots__ = ("handle", "ref")

    def __init__(self, tensor: Tensor) -> None:
        self.ref = weakref.ref(tensor)
        self.handle = add_hook(tensor._node, "retain", self)

    def __call__(self, grad: Tensor | None) -> None:
        tensor = self.ref()
        if tensor is None or grad is None:
            return
        if tensor._grad is None:
            tensor._grad = tools.clone(grad, memory_format=contiguous_format)
        else:
            tensor._grad = tensor._grad + grad  # type: ignore[operator]

    def move(self, tensor: Tensor, node: Node) -> None:
        """An in-place operation gave the tensor a new node: follow it."""
        self.handle.remove()
        self.handle = add_hook(node, "retain", self)


@method
def retain_grad(self: Tensor) -> None:
    """Fill `.grad` of this non-leaf tensor in backward too.

    >>> import flambeau as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> y = x * 3
    >>> y.retain_grad()
    >>> y.sum().backward()
    >>> y.grad
    tensor([1., 1.])
    """
    if not self.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if self._creation in UNRECORDED and self._node is None:
        return
    edge = edge_of(self)
    if isinstance(edge, Tensor) or self._retain is not None:
        return
    self._retain = Retain(self)


def _retains_grad(self: Tensor) -> bool:
    """Whether `retain_grad` was called on this non-leaf tensor.

    >>> import flambeau as torch
    >>> y = torch.ones(2, requires_grad=True) * 2
    >>> y.retain_grad()
    >>> y.retains_grad
    True
    """
    return self._retain is not None


Tensor.retains_grad = property(_retains_grad)  # type: ignore[attr-defined]


@method
def register_hook(self: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(grad)` when the gradient of this tensor is known; it may return another.

    >>> import flambeau as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 10)
    >>> x.sum().backward()
    >>> x.grad
    tensor([10., 10.])
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    return add_hook(edge_of(self), "tensor", hook)


@method
def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(tensor)` after the gradient of this leaf has been accumulated.

    >>> import flambeau as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
    >>> x.sum().backward()
    tensor([1., 1.])
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return add_hook(self, "accumulated", hook)


class _MultiHandle:
    """Removes the hooks on several tensors together."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Take all hooks away."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _MultiHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> _MultiHandle:
    """Call `fn` once the gradients of all `tensors` are known, or with mode="any" at the first.

    "all": `fn` gets a list of gradients (None where a tensor received none), and tensors that do
    not require grad are refused with an AssertionError; "any": one gradient, and those are passed
    over.

    >>> import flambeau as torch
    >>> x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    >>> handle = torch.autograd.graph.register_multi_grad_hook([x, y], print)
    >>> (x * 2 + y * 3).sum().backward()
    [tensor([2.]), tensor([3.])]
    >>> handle.remove()
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        tensors = [tensor for tensor in tensors if tensor.requires_grad]
    edges = [edge_of(tensor) for tensor in tensors]
    if any(edge is None for edge in edges):
        raise AssertionError("Expected gradient function to be set")
    collect = _Collector(edges, fn) if mode == "all" else _First(fn)
    handles = tuple(
        add_hook(edge, "tensor", functools.partial(collect, position))
        for position, edge in enumerate(edges)
    )
    return _MultiHandle(handles)


class _First:
    """Calls a function with the first gradient of each backward pass."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, position: int, grad: Tensor) -> None:
        notes = engine.running.task.notes
        if self not in notes:
            notes[self] = True
            self.function(grad)


class _Collector:
    """Calls a function with all gradients, once those that a backward pass reaches are known."""

    def __init__(self, edges: list[Any], function: Callable[..., Any]) -> None:
        self.edges = edges
        self.function = function

    def __call__(self, position: int, grad: Tensor) -> None:
        task = engine.running.task
        if self not in task.notes:
            reached = engine.edges_reached(task)
            missing = sum(getattr(edge, "source", edge) in reached for edge in self.edges)
            task.notes[self] = [missing, [None] * len(self.edges)]
        note = task.notes[self]
        note[0] -= 1
        note[1][position] = grad
        if note[0] == 0:
            del task.notes[self]
            self.function(note[1])
