"""`torch.utils.module_tracker`: which module a computation belongs to, in forward and backward."""

from __future__ import annotations

import weakref
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.autograd.hooks import register_multi_grad_hook
from flambeau.autograd.nesting import ExecutionEngine
from flambeau.nn.module_hooks import register_module_forward_hook, register_module_forward_pre_hook
from flambeau.utils._pytree import tree_flatten

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """In its region, `parents` holds the names of the modules whose forward or backward runs.

    `Net.layers.0` is the module `layers.0` of the outermost one, which is called by its class;
    "Global" is always there. `is_bw`: whether a backward pass is running.
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._hooks: list[Any] = []
        self._backward = False

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass reached one of the modules."""
        return self._backward

    def __enter__(self) -> ModuleTracker:
        self.parents = {"Global"}
        self._hooks = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, always_call=True),
        ]
        return self

    def __exit__(self, *exc: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _name(self, module: Any) -> str:
        """The module's name; with that of the outermost one, all below it get theirs."""
        if module in self._names:
            return self._names[module]
        name = self._names[module] = type(module).__name__
        for below, child in module.named_modules():
            self._names.setdefault(child, f"{name}.{below}")
        return name

    def _before(self, module: Any, args: Any) -> None:
        name = self._name(module)
        self.parents.add(name)
        self._when_backward_passes(args, lambda: self.parents.discard(name))

    def _after(self, module: Any, args: Any, result: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)
        self._when_backward_passes(result, lambda: self._enter_backward(name))

    def _enter_backward(self, name: str) -> None:
        self._backward = True
        self.parents.add(name)
        ExecutionEngine.queue_callback(self._leave_backward)

    def _leave_backward(self) -> None:
        self._backward = False
        self.parents = {"Global"}

    def _when_backward_passes(self, values: Any, then: Any) -> None:
        """Call a function once gradients of tensors among values are there."""
        leaves, _ = tree_flatten(values)
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.requires_grad]
        if tensors:
            register_multi_grad_hook(tensors, lambda grads: then())
