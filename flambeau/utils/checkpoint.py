"""Activation checkpointing: forget intermediate results, compute them again for backward.

`checkpoint(function, *args)` saves the arguments only. Non-reentrant checkpointing replaces every
tensor that the function saves for backward by a number; the first one that backward asks for runs
the function again and keeps what it saves. Reentrant checkpointing is a custom Function that runs
the function and a backward pass inside its own backward.
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
from flambeau.autograd.backward import backward as run_backward
from flambeau.autograd.function import Function
from flambeau.autograd.grad_mode import enable_grad
from flambeau.autograd.graph import modified_error
from flambeau.autograd.saved import saved_tensors_hooks
from flambeau.autograd.versions import version_of


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did not match the first."""


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
    return _Recompute(function, args, kwargs, context_fn, preserve_rng_state,
                      determinism_check).first_run()  # fmt: skip


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


class _Recompute:
    """One non-reentrant checkpoint: counts what the first run saves, then saves it itself."""

    def __init__(self, function: Any, args: Any, kwargs: Any, context_fn: Any, preserve: bool,
                 check: str) -> None:  # fmt: skip
        self.function, self.args, self.kwargs = function, args, kwargs
        self.contexts = context_fn()
        self.conditions = Conditions(preserve)
        self.check = check
        self.shapes: list[Any] = []
        self.kept: dict[int, Tensor] | None = None
        self.versions = [(a, version_of(a)) for a in args if isinstance(a, Tensor)]

    def first_run(self) -> Any:
        with self.contexts[0], saved_tensors_hooks(self._number, self._recomputed):
            return self.function(*self.args, **self.kwargs)

    def _number(self, tensor: Tensor) -> int:
        self.shapes.append((tensor._data.shape, tensor._data.dtype))
        return len(self.shapes) - 1

    def _recomputed(self, number: int) -> Tensor:
        if self.kept is None or number not in self.kept:
            self._second_run()
        assert self.kept is not None
        return self.kept.pop(number)

    def _second_run(self) -> None:
        for tensor, version in self.versions:
            if version_of(tensor) != version:
                raise modified_error(tensor, version)
        kept: list[Tensor] = []

        def keep(tensor: Tensor) -> int:
            kept.append(tensor.detach() if tensor.requires_grad else tensor)  # type: ignore[attr-defined]
            return len(kept) - 1

        hooks = saved_tensors_hooks(keep, kept.__getitem__)
        with self.conditions, enable_grad(), self.contexts[1], hooks:
            self.function(*self.args, **self.kwargs)
        self._compare(kept)
        self.kept = dict(enumerate(kept))

    def _compare(self, kept: list[Tensor]) -> None:
        if len(kept) != len(self.shapes):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                f"original forward and recomputation.\nNumber of tensors saved during forward: "
                f"{len(self.shapes)}\nNumber of tensors saved during recomputation: {len(kept)}."
            )
        if self.check == "none":
            return
        for position, (tensor, meta) in enumerate(zip(kept, self.shapes, strict=True)):
            if (tensor._data.shape, tensor._data.dtype) != meta:
                raise CheckpointError(
                    "torch.utils.checkpoint: Recomputed values for the following tensors have "
                    "different metadata than during the forward pass.\ntensor at position "
                    f"{position}:\nsaved metadata: {meta}\nrecomputed metadata: "
                    f"{(tensor._data.shape, tensor._data.dtype)}\n"
                )


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """Run a Sequential (or list) in `segments` parts, all but the last checkpointed."""
    if use_reentrant is None:
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
