"""Full backward hooks: nodes around a module that show gradients passing in and out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from flambeau._core import modes
from flambeau._ops.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.graph import Node, next_sequence_number, output_node
from flambeau.autograd.history import alias_of, edge_of

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


class BackwardHookFunctionBackward(Node):
    """Passes gradients on, and shows them to somebody on the way."""

    __slots__ = ("see",)
    title = "BackwardHookFunctionBackward"

    def apply(self, grad: Any) -> tuple[Any, ...]:
        grads = tuple(grad) if self.outputs > 1 else (grad,)
        return self.see(grads)  # type: ignore[no-any-return]


def _pass_through(tensors: list[Tensor], see: Hook) -> list[Tensor]:
    """Aliases of tensors whose common node calls `see(gradients)`."""
    node = BackwardHookFunctionBackward()
    node.edges = tuple(edge_of(tensor) for tensor in tensors)
    node.sequence_number = next_sequence_number()
    node.hooks, node.saved, node.see = None, (), see
    node.outputs = len(tensors)
    results = []
    for index, tensor in enumerate(tensors):
        alias = alias_of(tensor)
        alias._requires_grad = True
        alias._node = node if len(tensors) == 1 else output_node(node, index)
        results.append(alias)
    return results


class BackwardHooks:
    """The full backward hooks of one call, from its outputs' gradients to its inputs'."""

    def __init__(self, module: Any, hooks: list[Hook], pre_hooks: list[Hook]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.input_places: list[int] | None = None
        self.input_count = 0
        self.constants: dict[int, Tensor] = {}

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, with those that want gradients replaced by watched aliases."""
        places = _differentiable(args)
        self.input_count = len(args)
        if not places:
            return args
        self.input_places = places
        if not self.hooks:
            return args
        self.constants = {
            place: value
            for place, value in enumerate(args)
            if isinstance(value, Tensor) and place not in places
        }
        return _replaced(args, places, self._at_inputs)

    def watch_outputs(self, output: Any) -> Any:
        """The same for the outputs: a tensor, or the tensors in a tuple."""
        if isinstance(output, Tensor):
            return self._watch_output_tuple((output,))[0]
        if not isinstance(output, tuple):
            warnings.warn(NO_TENSORS.format(type(output)), stacklevel=6)
            return output
        watched = self._watch_output_tuple(output)
        return output._make(watched) if hasattr(output, "_make") else type(output)(watched)

    def _watch_output_tuple(self, output: tuple[Any, ...]) -> tuple[Any, ...]:
        places = _differentiable(output)
        if not places:
            return output
        count = len(output)

        def at_outputs(grads: tuple[Any, ...]) -> tuple[Any, ...]:
            return self._at_outputs(grads, places, count)

        return _replaced(output, places, at_outputs)

    def _at_outputs(self, grads: Any, places: list[int], count: int) -> tuple[Any, ...]:
        spread = _spread(grads, places, count)
        for hook in self.pre_hooks:
            replaced = hook(self.module, spread)
            if replaced is not None:
                spread = _as_tuple(replaced)
        self.grad_outputs = spread
        if self.input_places is None:
            self._run_without_inputs(spread)
        return tuple(spread[place] for place in places)

    def _run_without_inputs(self, grads: tuple[Any, ...]) -> None:
        warnings.warn(NO_INPUTS, stacklevel=2)
        nothing = (None,) * self.input_count
        for hook in self.hooks:
            replaced = hook(self.module, nothing, grads)
            if replaced is not None and any(grad is not None for grad in _as_tuple(replaced)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )
        self.grad_outputs = None

    def _at_inputs(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.grad_outputs is None:
            return grads  # of a second order: they have not passed through the outputs
        places: Any = self.input_places
        spread = _spread(grads, places, self.input_count, self.constants)
        for hook in self.hooks:
            replaced = hook(self.module, spread, self.grad_outputs)
            if replaced is None:
                continue
            spread = _as_tuple(replaced)
            if len(spread) != self.input_count:
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, "
                    f"got {len(spread)}, but expected {self.input_count}"
                )
        self.grad_outputs = None
        return tuple(spread[place] for place in places)


def _differentiable(values: tuple[Any, ...]) -> list[int]:
    """The places of tensors that want gradients."""
    if not modes.grad.enabled:
        return []
    return [
        place
        for place, value in enumerate(values)
        if isinstance(value, Tensor) and value.requires_grad
    ]


def _replaced(values: tuple[Any, ...], places: list[int], see: Hook) -> tuple[Any, ...]:
    result = list(values)
    aliases = _pass_through([values[place] for place in places], see)
    for place, alias in zip(places, aliases, strict=True):
        result[place] = alias
    return tuple(result)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _spread(
    grads: tuple[Any, ...],
    places: list[int],
    count: int,
    constants: dict[int, Tensor] | None = None,
) -> tuple[Any, ...]:
    """The gradients at their places; zeros for constant tensors, None for what is no tensor."""
    result: list[Any] = [None] * count
    for place, value in (constants or {}).items():
        result[place] = ops.zeros_like(value)
    for place, grad in zip(places, grads, strict=True):
        result[place] = grad
    return tuple(result)
