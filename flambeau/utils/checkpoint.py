"""Activation checkpointing: forget intermediate results, compute them again for backward.

`checkpoint(function, *args)` saves the arguments only. Checkpointing without reentrance is in
`recomputation.py`. Reentrant checkpointing is a custom Function that runs the function and a
backward pass inside its own backward.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flambeau._core.autocast import Snapshot
from flambeau._core.device import Cuda
from flambeau._core.generator import default_generator
from flambeau._core.missing import lazily
from flambeau._tensor.tensor import Tensor, constructors
from flambeau.autograd import engine
from flambeau.autograd.backward import backward as run_backward
from flambeau.autograd.function import Function
from flambeau.autograd.grad_mode import enable_grad
from flambeau.utils.checkpoint_devices import (
    DefaultDeviceType,
    device_module,
    get_device_states,
    set_device_states,
)
from flambeau.utils.recomputation import CheckpointError, GraphExecGroup, Recomputation
from flambeau.utils.recomputation_log import RecomputationLog
from flambeau.utils.selective_checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = ["CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType",
           "GraphExecGroup", "SelectiveCheckpointContext", "check_backward_validity", "checkpoint",
           "checkpoint_sequential", "create_selective_checkpoint_contexts", "detach_variable",
           "get_device_states", "noop_context_fn", "set_checkpoint_debug_enabled",
           "set_checkpoint_early_stop", "set_device_states"]  # fmt: skip


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
    `context_fn` makes two context managers: one for the first run, one for each second run, which
    ends with the last tensor that the first run saved if `early_stop`. Its tensors must have the
    shapes and types of the first's (`determinism_check="default"`). If the runs differ, `debug`
    lists the operators of both. `context_fn`, `early_stop`, `determinism_check` and `debug` are for
    `use_reentrant=False` only.
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
        check_backward_validity(args)
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    log = None
    if debug if set_checkpoint_debug_enabled.value is None else set_checkpoint_debug_enabled.value:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        log = RecomputationLog()
        context_fn = log.contexts
    said = set_checkpoint_early_stop.value
    stop = early_stop if said is None else said
    made = Recomputation(function, args, kwargs, context_fn, Conditions(preserve_rng_state),
                         determinism_check, stop, log)  # fmt: skip
    return made.first_run(args)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if none of the inputs learns: a reentrant checkpoint of them has no gradient."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None",
                      stacklevel=3)  # fmt: skip


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same values as leaves, which learn where the inputs learn."""
    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: "
                           f"{type(inputs).__name__}")  # fmt: skip
    return tuple(_as_leaf(x) if isinstance(x, Tensor) else x for x in inputs)


def _as_leaf(tensor: Any) -> Any:
    return tensor.detach().requires_grad_(tensor.requires_grad)


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
            inputs[position] = _as_leaf(tensor)
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
        if preserve:
            device_module(DefaultDeviceType.get_device_type())
        self.states = [s.get_state() for s in _streams()] if preserve else []

    def __enter__(self) -> None:
        self.stack = contextlib.ExitStack()
        self.stack.enter_context(self.autocast)
        for stream, state in zip(_streams(), self.states, strict=False):
            self.stack.callback(stream.set_state, stream.get_state())
            stream.set_state(state)

    def __exit__(self, *exc: object) -> None:
        self.stack.close()


def _streams() -> list[Any]:
    """The default random streams of all devices."""
    return [default_generator, *(constructors["cuda_streams"]() if Cuda.count else ())]


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


class set_checkpoint_debug_enabled:
    """Whether checkpoints made within list the operators of both runs where these differ,
    whatever they say themselves; None leaves it to them."""

    value: bool | None = None

    def __init__(self, enabled: bool | None) -> None:
        self.enabled = enabled

    def __enter__(self) -> None:
        self.before = set_checkpoint_debug_enabled.value
        set_checkpoint_debug_enabled.value = self.enabled

    def __exit__(self, *exc: object) -> None:
        set_checkpoint_debug_enabled.value = self.before


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Run a Sequential (or list) in `segments` parts, all but the last checkpointed.

    The only further keyword is `preserve_rng_state`: see `checkpoint`.
    """
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
    preserve_rng_state = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
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


__getattr__ = lazily(__name__)
