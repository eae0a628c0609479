"""Activation checkpointing: forget intermediate results, compute them again for backward.

`checkpoint(function, *args)` saves the arguments only. Checkpointing without reentrance is in
`recomputation.py`. Reentrant checkpointing is a custom Function that runs the function and a
backward pass inside its own backward.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from flambeau._core import modes
from flambeau._core.autocast import Snapshot
from flambeau._core.generator import default_generator
from flambeau._tensor.tensor import Tensor
from flambeau.autograd import engine
from flambeau.autograd.backward import backward as run_backward
from flambeau.autograd.function import Function
from flambeau.autograd.grad_mode import enable_grad
from flambeau.utils.recomputation import CheckpointError, Recomputation

__all__ = ["CheckpointError", "CheckpointFunction", "checkpoint", "checkpoint_sequential",
           "noop_context_fn", "set_checkpoint_early_stop"]  # fmt: skip


def noop_context_fn() -> tuple[Any, Any]:
    """Contexts that change nothing, for the first and the second run."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, whose intermediate results are computed again in backward.

    With `preserve_rng_state` the second run draws the same random numbers as the first.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "Starting in PyTorch 2.9, calling checkpoint without use_reentrant will raise an "
            "exception. use_reentrant=False is recommended, but if you need to preserve the "
            "current default behavior, you can pass use_reentrant=True. Refer to docs for more "
            "details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when "
                             "use_reentrant=False.")  # fmt: skip
        if not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None",
                          stacklevel=2)  # fmt: skip
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    said = set_checkpoint_early_stop.value
    stop = early_stop if said is None else said
    made = Recomputation(function, args, kwargs, context_fn, Conditions(preserve_rng_state),
                         determinism_check, stop)  # fmt: skip
    return made.first_run(args)


INCOMPATIBLE = (
    "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an "
    "`inputs` parameter to .backward(). To resolve this error, you can either set "
    "use_reentrant=False, or call .backward() without passing the `inputs` argument."
)


class CheckpointFunction(Function):
    @staticmethod
    def forward(ctx: Any, function: Any, preserve: bool, *args: Any) -> Any:
        ctx.function = function
        ctx.conditions = Conditions(preserve)
        ctx.args = [None if isinstance(a, Tensor) else a for a in args]
        ctx.tensor_positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*[args[i] for i in ctx.tensor_positions])
        return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if engine.running.task.needed is not None:
            raise RuntimeError(INCOMPATIBLE)
        inputs = list(ctx.args)
        for position, tensor in zip(ctx.tensor_positions, ctx.saved_tensors, strict=True):
            inputs[position] = tensor.detach().requires_grad_(tensor.requires_grad)
        with ctx.conditions, enable_grad():
            outputs = ctx.function(*inputs)
        pairs = [
            (o, g)
            for o, g in zip(_listed(outputs), grads, strict=True)
            if isinstance(o, Tensor) and o.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not "
                               "necessary")  # fmt: skip
        run_backward([o for o, _ in pairs], [g for _, g in pairs])
        found = [x._grad if isinstance(x, Tensor) else None for x in inputs]
        return None, None, *found


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (tuple, list)) else (value,)


class Conditions:
    """What the first run met and the second one shall meet again: autocast's settings and, if
    `preserve`, the random streams; they go on afterwards as if nothing was drawn."""

    def __init__(self, preserve: bool) -> None:
        self.autocast = Snapshot()
        self.states = [s.get_state() for s in _streams()] if preserve else []

    def __enter__(self) -> None:
        self.stack = contextlib.ExitStack()
        if modes.watch.places is not None:  # the function is the user's, it works anywhere
            self.stack.enter_context(modes.watch.places.outside())
        self.stack.enter_context(self.autocast)
        for stream, state in zip(_streams(), self.states, strict=False):
            self.stack.callback(stream.set_state, stream.get_state())
            stream.set_state(state)

    def __exit__(self, *exc: object) -> None:
        self.stack.close()


def _streams() -> list[Any]:
    """The default random streams of all devices."""
    places = modes.watch.places
    return [default_generator, *([] if places is None else places.streams())]


class set_checkpoint_early_stop:
    """Whether checkpoints made within end their second run with the last tensor that is needed,
    whatever they say themselves."""

    value: bool | None = None

    def __init__(self, enable: bool) -> None:
        self.enable = enable

    def __enter__(self) -> None:
        self.before = set_checkpoint_early_stop.value
        set_checkpoint_early_stop.value = self.enable

    def __exit__(self, *exc: object) -> None:
        set_checkpoint_early_stop.value = self.before


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """Run a Sequential (or list) in `segments` parts, all but the last checkpointed."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be "
            "passed explicitly. In version 2.9 we will raise an exception if use_reentrant is not "
            "passed. use_reentrant=False is recommended, but if you need to preserve the current "
            "default behavior, you can pass use_reentrant=True. Refer to docs for more details on "
            "the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    modules = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for module in modules[start:end]:
                value = module(value)
            return value

        return run

    size = len(modules) // segments
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(part(start, start + size), input, use_reentrant=use_reentrant,
                           preserve_rng_state=preserve_rng_state)  # fmt: skip
    return part(size * (segments - 1), len(modules))(input)
