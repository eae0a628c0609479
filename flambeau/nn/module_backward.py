"""Full backward hooks: nodes around a module that show the gradients passing in and out.

The tensors that go into a module, and those that come out of it, pass through one function each
that does nothing. What its node is sent and sends on is what hooks see.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from flambeau._core import modes
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.function import Function

Hook = Callable[..., Any]

NO_INPUTS = (
    "Full backward hook is firing when gradients are computed with respect to module outputs since "
    "no inputs require gradients. See https://docs.pytorch.org/docs/main/generated/"
    "torch.nn.Module.html#torch.nn.Module.register_full_backward_hook for more details."
)
NO_TENSORS = (
    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
    "received {}"
)
NOTHING_TO_REPLACE = (
    "Backward hook for Modules where no input requires gradient should always return None or None "
    "for all gradients."
)


class BackwardHookFunction(Function):
    """Passes tensors on as they are."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Any:
        """The tensors; those that want no gradient stay so."""
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients, zeros for those that are missing."""
        return grads


class Passage:
    """Where the tensors stand among the values on one side of a module.

    `open`: whether one of them wants a gradient; all of them then pass through one node. Nothing is
    kept of the values, nor the node, whose hooks lead here.
    """

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.count = len(values)
        self.places = [n for n, value in enumerate(values) if isinstance(value, Tensor)]
        wanted = [values[place].requires_grad for place in self.places]
        self.open = bool(modes.grad.enabled) and any(wanted)

    def through(self, values: tuple[Any, ...], see: Hook) -> tuple[Any, ...]:
        """The values, their tensors behind a node that has a hook."""
        if not self.open:
            return values
        tensors = BackwardHookFunction.apply(*self.picked(values))
        passed = list(values)
        for place, tensor in zip(self.places, tensors, strict=True):
            passed[place] = tensor
        nodes = [tensor.grad_fn for tensor in tensors]
        node = next(n for n in nodes if isinstance(n, BackwardHookFunction._backward_cls))
        node.register_hook(_named_hook(see))
        kind = type(values)
        return tuple(passed) if kind is tuple else kind(*passed)  # as namedtuples are made

    def spread(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """Gradients of the tensors at the places of these; None for what is no tensor."""
        spread: list[Any] = [None] * self.count
        for place, grad in zip(self.places, grads, strict=True):
            spread[place] = grad
        return tuple(spread)

    def picked(self, values: Any) -> tuple[Any, ...]:
        """What stands at the places of tensors."""
        return tuple([values[place] for place in self.places])


class BackwardHooks:
    """The full backward hooks of one call, from its outputs' gradients to its inputs'."""

    def __init__(self, module: Any, hooks: list[Hook], pre_hooks: list[Hook]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.inputs: Any = None
        self.outputs: Any = None
        self.grad_outputs: Any = None
        """What the outputs' gradients are, from when they are known to when hooks have run."""

    def watch_inputs(self, args: tuple[Any, ...]) -> Any:
        """The arguments, as the forward is to get them."""
        self.inputs = Passage(args)
        return self.inputs.through(args, self._at_inputs)

    def watch_outputs(self, output: Any) -> Any:
        """The output, as the caller is to get it."""
        if not isinstance(output, (Tensor, tuple)):
            warnings.warn(NO_TENSORS.format(type(output)), stacklevel=6)
        several = isinstance(output, tuple)
        values = output if several else (output,)
        self.outputs = Passage(values)
        values = self.outputs.through(values, self._at_outputs)
        return values if several else values[0]

    def _at_outputs(self, _: Any, grad_outputs: tuple[Any, ...]) -> Any:
        grads = self._after_pre_hooks(self.outputs.spread(grad_outputs))
        self.grad_outputs = grads
        if not self.inputs.open:
            self._run_without_inputs(grads)
        return self.outputs.picked(grads)

    def _after_pre_hooks(self, grads: Any) -> Any:
        for hook in self.pre_hooks:
            replaced = hook(self.module, grads)
            if replaced is not None:
                grads = _same_number(
                    replaced, grads, "Backward pre hook returned an invalid number of grad_output"
                )
        return grads

    def _run_without_inputs(self, grads: Any) -> None:
        warnings.warn(NO_INPUTS, stacklevel=2)
        for hook in self.hooks:
            replaced = hook(self.module, (None,) * self.inputs.count, grads)
            if replaced is not None and not _is_nothing(replaced):
                raise RuntimeError(NOTHING_TO_REPLACE)
        self.grad_outputs = None

    def _at_inputs(self, grad_inputs: tuple[Any, ...], _: Any) -> Any:
        if self.grad_outputs is None:
            return None  # these gradients have not come through the outputs
        grads: Any = self.inputs.spread(grad_inputs)
        for hook in self.hooks:
            replaced = hook(self.module, grads, self.grad_outputs)
            if replaced is not None:
                grads = _same_number(
                    replaced, grads, "Backward hook returned an invalid number of grad_input"
                )
        self.grad_outputs = None
        return self.inputs.picked(grads)


def _same_number(replaced: Any, grads: Any, otherwise: str) -> Any:
    """What a hook has returned instead of gradients; the engine checks them one by one later."""
    if len(replaced) != len(grads):
        raise RuntimeError(f"{otherwise}, got {len(replaced)}, but expected {len(grads)}")
    return replaced


def _is_nothing(replaced: Any) -> bool:
    return isinstance(replaced, tuple) and all(grad is None for grad in replaced)


def _named_hook(see: Hook) -> Hook:
    """A function by the name that torch's messages have."""

    def hook(grad_inputs: Any, grad_outputs: Any) -> Any:
        return see(grad_inputs, grad_outputs)

    return hook
