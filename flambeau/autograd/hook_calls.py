"""Calls of the hooks that users have put on tensors, nodes and leaves.

What a hook returns takes the place of what it was given once `checked` has seen that it fits.
"""

from __future__ import annotations

from typing import Any

from flambeau._core.type_words import type_words
from flambeau._tensor.sparse import SparseTensor
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.graph import Node, OfOutput, accumulator_of

# ---- what hooks return


def checked(replaced: Any, given: tuple[Any, ...], hook: Any) -> tuple[Any, ...]:
    """What a hook on several gradients has returned instead of them."""
    if not isinstance(replaced, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(replaced).__name__}'")
    if len(replaced) != len(given):
        raise RuntimeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values "
            f"(got {len(replaced)}, but expected {len(given)})"
        )
    for part, grad in zip(replaced, given, strict=True):
        if part is not None:
            checked_part(part, grad, hook)
    return replaced


def checked_part(replaced: Any, grad: Tensor | None, hook: Any) -> Tensor:
    """What a hook has returned instead of one gradient."""
    if grad is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(replaced, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(replaced).__name__}'")
    given, found = _type_of(grad), _type_of(replaced)
    if given != found:
        change = f"(was {given} got {found})"
        raise RuntimeError(f"hook '{_name(hook)}' has changed the type of value {change}")
    if replaced.shape != grad.shape:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the size of value")
    return replaced


def _type_of(tensor: Tensor) -> str:
    return type_words(tensor.dtype, isinstance(tensor, SparseTensor))


def _name(hook: Any) -> str:
    function = hook.hook if isinstance(hook, OfOutput) else hook
    return str(getattr(function, "__name__", "<unknown>"))


# ---- nodes


def run_tensor_hooks(node: Node, grad: Any) -> Any:
    """Tensor hooks and retain_grad, once a gradient is known."""
    if isinstance(grad, list):
        return _run_output_hooks(node, list(grad))
    for kind in ("tensor", "retain"):
        for hook in list(node.hooks.get(kind, {}).values()):
            replaced = hook(grad)
            if replaced is not None:
                grad = checked_part(replaced, grad, hook)
    return grad


def _run_output_hooks(node: Node, grads: list[Any]) -> list[Any]:
    """The same for a node with several outputs: all hooks of one, then all of the next, in the
    order in which outputs got their first."""
    for kind in ("tensor", "retain"):
        hooks = list(node.hooks.get(kind, {}).values())
        order = list(dict.fromkeys(of.index for of in hooks))
        for of in sorted(hooks, key=lambda of: order.index(of.index)):
            grad = grads[of.index]
            replaced = of.hook(grad)
            if replaced is not None:
                grads[of.index] = checked_part(replaced, grad, of.hook)
    return grads


def run_pre_hooks(node: Node, grad: Any) -> Any:
    """Node pre-hooks, before a node runs."""
    for hook in list(node.hooks.get("pre", {}).values()):
        given = outputs_of(node, grad)
        replaced = hook(given)
        if replaced is not None:
            grad = _replaced(node, grad, checked(replaced, given, hook))
    return grad


def outputs_of(node: Node, grad: Any) -> tuple[Any, ...]:
    """The gradients of a node's outputs as hooks see them: of those that have one."""
    if not isinstance(grad, list):
        return (grad,)
    return tuple(grad) if node.shown is None else tuple([grad[index] for index in node.shown])


def _replaced(node: Node, grad: Any, replaced: tuple[Any, ...]) -> Any:
    if not isinstance(grad, list):
        return replaced[0]
    if node.shown is None:
        return list(replaced)
    grads = list(grad)
    for index, part in zip(node.shown, replaced, strict=True):
        grads[index] = part
    return grads


def run_post_hooks(node: Node, grads: tuple[Any, ...], grad: Any) -> tuple[Any, ...]:
    """Node hooks, after a node has run: they may replace the gradients it sends."""
    outputs = outputs_of(node, grad)
    for hook in list(node.hooks.get("post", {}).values()):
        replaced = hook(grads, outputs)
        if replaced is not None:
            grads = checked(replaced, grads, hook)
    return grads


# ---- leaves


def run_leaf_hooks(leaf: Tensor, grad: Any, accumulates: bool) -> Any:
    """Hooks of a leaf, before its gradient is accumulated; or only captured."""
    for hook in list(leaf._hooks.get("tensor", {}).values()):
        replaced = hook(grad)
        if replaced is not None:
            grad = checked_part(replaced, grad, hook)
    if not accumulates:
        return grad
    for hook in list(leaf._hooks.get("node_pre", {}).values()):
        replaced = hook((grad,))
        if replaced is not None:
            grad = checked(replaced, (grad,), hook)[0]
    return grad


def run_filled_hooks(leaf: Tensor, grad: Tensor | None) -> None:
    """Those hooks of a leaf that see the leaf once it has received a gradient."""
    shown = leaf
    for hook in list(leaf._hooks.get("accumulated", {}).values()):
        replaced = hook(shown)
        if replaced is not None:
            shown = checked_part(replaced, shown, hook)
    if shown is not leaf:
        raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def run_accumulated_hooks(leaf: Tensor, grad: Tensor | None) -> None:
    """Hooks of a leaf that has received a gradient, or was sent none."""
    run_filled_hooks(leaf, grad)
    if leaf._hooks.get("node_post"):
        accumulator_of(leaf)
        for hook in list(leaf._hooks["node_post"].values()):
            replaced = hook((), (grad,))
            if replaced is not None:
                checked(replaced, (), hook)
