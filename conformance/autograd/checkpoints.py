"""Activation checkpointing: what is computed again, when, and how often.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import gc
import importlib
import weakref
from typing import Any


def _module(t: Any) -> Any:
    return importlib.import_module(f"{t.__name__}.utils.checkpoint")


def _counted(t: Any, early_stop: bool) -> list[int]:
    """How often the parts of a function run: the last saves nothing."""
    module = _module(t)
    seen = [0, 0]

    def ends(x: Any) -> Any:
        seen[1] += 1
        return x + 1

    def function(x: Any) -> Any:
        seen[0] += 1
        return ends(x.sin().exp())

    x = t.tensor(0.5, requires_grad=True)
    with module.set_checkpoint_early_stop(early_stop):
        y = module.checkpoint(function, x, use_reentrant=False)
    y.backward()
    return [*seen, x.grad]


def early_stop(t):
    return _counted(t, True)


def no_early_stop(t):
    return _counted(t, False)


def early_stop_of_the_call(t):
    module, seen = _module(t), []

    def function(x):
        y = x.sin()
        seen.append(1)
        return y * 1

    x = t.tensor(0.5, requires_grad=True)
    module.checkpoint(function, x, use_reentrant=False, early_stop=False).backward()
    return seen, x.grad


def _nested(t: Any, order: int) -> list[Any]:
    module, found = _module(t), []

    def again(function: Any) -> Any:
        return lambda *args: module.checkpoint(function, *args, use_reentrant=False)

    def slope(function: Any) -> Any:
        def of(x: Any) -> Any:
            with t.enable_grad():
                return t.autograd.grad(function(x).sum(), x, create_graph=True)[0]

        return of

    def inner(x: Any) -> Any:
        return x.sin().exp() * x

    def middle(x: Any) -> Any:
        return again(inner)(again(inner)(x)).cos()

    for stop in (True, False):
        function = again(middle)
        for _ in range(order):
            function = again(slope(function))
        x = t.tensor([0.3, -0.7], requires_grad=True)
        with module.set_checkpoint_early_stop(stop):
            y = function(x)
            found.append(t.autograd.grad(y.sum(), x)[0])
    return found


def nested(t):
    return _nested(t, 0)


def nested_with_slopes(t):
    return _nested(t, 1)


def nested_with_second_slopes(t):
    return _nested(t, 2)


def graphs_die_without_the_collector(t):
    module, alive = _module(t), []
    gc.disable()
    try:
        for stop in (True, False):
            x = t.tensor(0.5, requires_grad=True)
            with module.set_checkpoint_early_stop(stop):
                y = module.checkpoint(lambda x: x.exp().sin().exp(), x, use_reentrant=False)
            (slope,) = t.autograd.grad(y, x, create_graph=True)
            note = type("Note", (), {})()
            y.grad_fn.metadata["note"] = note
            watch = weakref.ref(note)
            del note, x, y, slope
            alive.append(watch() is not None)
    finally:
        gc.enable()
    return alive


def backward_within_the_function(t):
    def function(x):
        y = x.sin().exp()
        (slope,) = t.autograd.grad(y, x, retain_graph=True)
        return y * slope.detach()

    x = t.tensor(0.5, requires_grad=True)
    _module(t).checkpoint(function, x, use_reentrant=False).backward()
    return x.grad


def taken_twice(t):
    class Twice(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            again, _ = ctx.saved_tensors
            return g * y, g * again

    x, y = t.tensor(2.0, requires_grad=True), t.tensor(3.0, requires_grad=True)
    out = _module(t).checkpoint(lambda a, b: Twice.apply(a * b, b.exp()), x, y, use_reentrant=False)
    out.backward()


def the_same_object_comes_back(t):
    kept = []

    class Keeps(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            kept.extend(ctx.saved_tensors)
            return g, None

    x, y = t.ones(1, requires_grad=True), t.ones(1)
    _module(t).checkpoint(Keeps.apply, x, y, use_reentrant=False).backward()
    return kept[0] is y


def reentrant_and_grad(t):
    x = t.ones(2, requires_grad=True)
    y = _module(t).checkpoint(t.exp, x, use_reentrant=True).sum()
    t.autograd.grad(y, x)


def reentrant_and_inputs(t):
    x = t.ones(2, requires_grad=True)
    y = _module(t).checkpoint(t.exp, x, use_reentrant=True).sum()
    y.backward(inputs=[x])


def with_save_on_cpu(t):
    x = t.tensor([0.5, 2.0], requires_grad=True)
    with t.autograd.graph.save_on_cpu():
        y = _module(t).checkpoint(lambda x: x.pow(2).exp(), x.pow(3), use_reentrant=False)
        z = y.pow(2)
    z.sum().backward()
    return x.grad


def fewer_saved_the_second_time(t):
    return _differing(t, lambda x: x.sin().exp().sin(), lambda x: x.sin().exp())


def others_saved_the_second_time(t):
    return _differing(t, lambda x: x.sin().exp(), lambda x: (x.sin() * t.ones(2)).sum())


def _differing(t: Any, first: Any, second: Any) -> None:
    runs = []

    def function(x: Any) -> Any:
        runs.append(1)
        return (first if len(runs) == 1 else second)(x)

    x = t.ones(1, requires_grad=True)
    y = _module(t).checkpoint(function, x, use_reentrant=False)
    try:
        y.sum().backward()
    except RuntimeError as error:
        raise type(error)(str(error).partition(":")[2].partition("\n")[0]) from None


def lists_of_results(t):
    """What is no tensor and no tuple comes back as it is, without gradients."""

    class Halves(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, kind):
            return {"list": [x * 2, x * 3], "dict": {"a": x * 2}, "nested": (x * 2, [x * 3])}[kind]

        @staticmethod
        def backward(ctx, *grads):
            return grads[0], None

    found = []
    for kind in ("list", "dict", "nested"):
        result = Halves.apply(t.ones(2, requires_grad=True), kind)
        parts = result.values() if isinstance(result, dict) else result
        found.append((type(result).__name__, [getattr(p, "requires_grad", None) for p in parts]))
    again = t.utils.checkpoint.checkpoint(lambda x: [x * 2], t.ones(2), use_reentrant=True)
    return found, type(again).__name__
