"""Calls of the hooks that users have put on tensors, nodes and leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.autograd.graph import Node, accumulator_of


def run_tensor_hooks(node: Node, grad: Any) -> Any:
    """Tensor hooks and retain_grad, once a gradient is known."""
    if isinstance(grad, list):
        return _run_output_hooks(node, list(grad))
    for kind in ("tensor", "retain"):
        for hook in list(node.hooks.get(kind, {}).values()):
            replaced = hook(grad)
            if replaced is not None:
                grad = _check_replacement(replaced, grad, hook)
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
                grads[of.index] = _check_replacement(replaced, grad, of.hook)
    return grads


def run_pre_hooks(node: Node, grad: Any) -> Any:
    """Node pre-hooks, before a node runs."""
    for hook in list(node.hooks.get("pre", {}).values()):
        replaced = hook(outputs_of(node, grad))
        if replaced is not None:
            grad = _replaced(node, grad, replaced)
    return grad


def outputs_of(node: Node, grad: Any) -> tuple[Any, ...]:
    """The gradients of a node's outputs as hooks see them: of those that have one."""
    if not isinstance(grad, list):
        return (grad,)
    return tuple(grad) if node.shown is None else tuple([grad[index] for index in node.shown])


def _replaced(node: Node, grad: Any, replaced: Sequence[Any]) -> Any:
    if not isinstance(grad, list):
        return replaced[0]
    if node.shown is None:
        return list(replaced)
    grads = list(grad)
    for index, part in zip(node.shown, replaced, strict=True):
        grads[index] = part
    return grads


def _check_replacement(replaced: Any, grad: Tensor | None, hook: Any) -> Tensor:
    if not isinstance(replaced, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(replaced).__name__}'")
    if grad is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if replaced.shape != grad.shape:
        name = getattr(hook, "__name__", "<unknown>")
        raise RuntimeError(f"hook '{name}' has changed the size of value")
    return replaced


def run_post_hooks(node: Node, grads: tuple[Any, ...], grad: Any) -> tuple[Any, ...]:
    """Node hooks, after a node has run: they may replace the gradients it sends."""
    outputs = outputs_of(node, grad)
    for hook in list(node.hooks.get("post", {}).values()):
        replaced = hook(tuple(grads), outputs)
        if replaced is not None:
            grads = replaced if isinstance(replaced, tuple) else (replaced,)
    return grads


# ---- leaves


def run_leaf_hooks(leaf: Tensor, grad: Any, accumulates: bool) -> Any:
    """Hooks of a leaf, before its gradient is accumulated; or only captured."""
    for hook in list(leaf._hooks.get("tensor", {}).values()):
        replaced = hook(grad)
        if replaced is not None:
            grad = _check_replacement(replaced, grad, hook)
    if not accumulates:
        return grad
    for hook in list(leaf._hooks.get("node_pre", {}).values()):
        replaced = hook((grad,))
        if replaced is not None:
            grad = replaced[0]
    return grad


def run_accumulated_hooks(leaf: Tensor, grad: Tensor | None) -> None:
    """Hooks of a leaf that has received a gradient, or was sent none."""
    for hook in list(leaf._hooks.get("accumulated", {}).values()):
        if hook(leaf) is not None:
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")
    if leaf._hooks.get("node_post"):
        accumulator_of(leaf)
        for hook in list(leaf._hooks["node_post"].values()):
            hook((), (grad,))
