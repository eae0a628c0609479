"""Gradient scaling: fused optimizers, and the methods that trainers call and replace."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

FUSED = (("SGD", {}), ("Adam", {}), ("AdamW", {"amsgrad": True}), ("Adagrad", {}))


def _start(library: Any, name: str, factor: float, **options: Any) -> Any:
    weight = library.tensor([1.0, 2.0], requires_grad=True)
    optimizer = getattr(library.optim, name)([weight], lr=0.5, **options)
    scaler = library.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale((weight * weight * factor).sum()).backward()
    return weight, optimizer, scaler


def steps_of_fused_optimizers(library: Any) -> Any:
    """A skipped step leaves the gradients scaled."""
    found = []
    for name, options in FUSED:
        for factor in (1.0, float("inf"), float("nan")):
            weight, optimizer, scaler = _start(library, name, factor, fused=True, **options)
            result = scaler.step(optimizer)
            left = hasattr(optimizer, "grad_scale"), hasattr(optimizer, "found_inf")
            scaler.update()
            found.append((result, weight, weight.grad, left, scaler.get_scale()))
    return found


def unscaled_before_a_fused_step(library: Any) -> Any:
    weight, optimizer, scaler = _start(library, "Adam", 1.0, fused=True)
    scaler.unscale_(optimizer)
    before = weight.grad.clone()
    return before, scaler.step(optimizer), weight, weight.grad


def a_scale_of_the_users(library: Any) -> Any:
    weight, optimizer, scaler = _start(library, "SGD", 1.0, fused=True)
    optimizer.grad_scale = library.tensor(2.0)
    return scaler.step(optimizer), weight, weight.grad, hasattr(optimizer, "grad_scale")


def a_fused_step_without_gradients(library: Any) -> Any:
    weight = library.ones(2, requires_grad=True)
    optimizer = library.optim.Adam([weight], fused=True)
    scaler = library.amp.GradScaler("cpu")
    scaler.scale(library.ones(1))
    result = scaler.step(optimizer)
    try:
        scaler.update()
    except AssertionError as error:
        return result, str(error)
    return result


class _Recording:
    """What an optimizer sees in its step."""

    def optimizer(self, library: Any, takes_scaler: bool) -> Any:
        seen = self.seen = []

        class Optimizer(library.optim.Optimizer):  # type: ignore[misc]
            _step_supports_amp_scaling = True

        def step(self: Any, closure: Any = None) -> str:
            seen.extend([self.grad_scale, self.found_inf])
            return "stepped"

        def step_with_scaler(self: Any, closure: Any = None, *, grad_scaler: Any = None) -> str:
            seen.extend([hasattr(self, "grad_scale"), type(grad_scaler).__name__])
            return "stepped"

        Optimizer.step = step_with_scaler if takes_scaler else step
        weight = library.ones(2, requires_grad=True)
        weight.grad = library.tensor([4.0, float("inf")])
        return Optimizer([weight], {})


def optimizers_that_scale_by_themselves(library: Any) -> Any:
    found = []
    for takes_scaler in (False, True):
        recording = _Recording()
        optimizer = recording.optimizer(library, takes_scaler)
        scaler = library.amp.GradScaler("cpu", init_scale=4.0)
        scaler.scale(library.ones(1))
        found.append((scaler.step(optimizer), recording.seen))
    return found


def infinite_gradients_are_found_without_change(library: Any) -> Any:
    weight, optimizer, scaler = _start(library, "SGD", float("inf"))
    found = scaler._check_inf_per_device(optimizer)
    again = scaler._found_inf_per_device(optimizer)
    return list(found.values()), list(again.values()), weight.grad, [str(d) for d in found]


def the_scaler_that_allows_half_gradients(library: Any) -> Any:
    """As trainers do it: the method is replaced."""
    found = []
    for allowed in (False, True):
        weight = library.ones(3, dtype=library.float16).requires_grad_()
        optimizer = library.optim.SGD([weight], lr=0.5)
        scaler = library.amp.GradScaler("cpu", init_scale=4.0)
        original = scaler._unscale_grads_
        scaler._unscale_grads_ = lambda o, inv, bad, allow, original=original, allowed=allowed: (
            original(o, inv, bad, allowed)
        )
        scaler.scale((weight * 1.5).sum()).backward()
        try:
            scaler.unscale_(optimizer)
        except ValueError as error:
            found.append((str(error), weight.grad))
            continue
        found.append((weight.grad, scaler.step(optimizer), weight))
    return found


def a_scaler_of_the_users(library: Any) -> Any:
    """Subclasses decide whether to step."""
    calls = []

    class Scaler(library.amp.GradScaler):  # type: ignore[misc]
        def _maybe_opt_step(self, optimizer: Any, optimizer_state: Any, *args: Any,
                            **kwargs: Any) -> Any:  # fmt: skip
            calls.append((optimizer_state["stage"].name, args, kwargs))
            return super()._maybe_opt_step(optimizer, optimizer_state, *args, **kwargs)

    weight = library.ones(2, requires_grad=True)
    optimizer = library.optim.SGD([weight], lr=0.5)
    scaler = Scaler("cpu", init_scale=4.0)
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    return calls, weight


def messages_before_anything_was_scaled(library: Any) -> Any:
    scaler = library.amp.GradScaler("cpu")
    optimizer = library.optim.SGD([library.ones(1, requires_grad=True)], lr=0.1)
    found = []
    for call in (lambda: scaler.step(optimizer), lambda: scaler.unscale_(optimizer), scaler.update,
                 lambda: scaler._check_inf_per_device(optimizer),
                 lambda: scaler._check_scale_growth_tracker("here")):  # fmt: skip
        try:
            call()
        except AssertionError as error:
            found.append(str(error))
    found.append(scaler._get_scale_async())
    scaler._lazy_init_scale_growth_tracker(library.device("cpu"))
    return [*found, scaler._get_scale_async(), scaler._growth_tracker]


def the_functions_below(library: Any) -> Any:
    nan, inf = float("nan"), float("inf")
    found = []
    for bad in (1.0, nan, inf):
        grads = [library.tensor([4.0, bad]), library.tensor([8.0]).half(), library.ones(2).double()]
        flag = library.zeros(1)
        library._amp_foreach_non_finite_check_and_unscale_(grads, flag, library.tensor([0.25]))
        found.append((grads, flag))
    scale, tracker = library.full((1,), 4.0), library.zeros(1, dtype=library.int32)
    for flag in (0.0, 0.0, 1.0, 0.0, 2.0):
        flags = library.tensor([flag])
        library._amp_update_scale_(scale, tracker, flags, 3.0, 0.25, 2)
        found.append((scale.item(), tracker.item()))
    return found


def sparse_leaves(library: Any) -> Any:
    places, values = library.tensor([[0, 1, 1], [2, 0, 2]]), library.tensor([16.0, 32.0, 64.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        leaf = library.sparse_coo_tensor(places, values, (2, 3)).clone()
    leaf.grad = leaf.clone()
    scaler = library.amp.GradScaler("cpu")
    optimizer = library.optim.SGD([leaf], lr=1.0)
    scaler._unscale_grads_(optimizer, library.tensor([0.25]), library.zeros(1), False)
    return leaf.grad is leaf.grad, leaf.grad.to_dense(), leaf.to_dense()


def half_sparse_gradients_that_overflow_as_sums(library: Any) -> Any:
    places, values = library.tensor([[0, 1, 0], [2, 0, 2]]), library.tensor([64e3, 32.0, 64e3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        leaf = library.sparse_coo_tensor(places, values, (2, 3), dtype=library.float16)
        leaf.grad = library.sparse_coo_tensor(places, values, (2, 3), dtype=library.float16)
    scaler = library.amp.GradScaler("cpu")
    optimizer = library.optim.SGD([leaf], lr=1.0)
    found = scaler._unscale_grads_(optimizer, library.tensor(0.25), library.tensor(0.0), True)
    return list(found.values())


def states_go_from_one_scaler_to_another(library: Any) -> Any:
    first = library.GradScaler("cpu", init_scale=3.0, growth_factor=4.0, growth_interval=2)
    second = library.amp.GradScaler("cpu", init_scale=6.0)
    second.scale(library.ones(1))
    before = second._scale
    second.load_state_dict(first.state_dict())
    copied = pickle.loads(pickle.dumps(second))
    return before is second._scale, second.state_dict(), copied.state_dict(), copied._scale


def other_modules_have_the_old_names(library: Any) -> Any:
    import importlib

    name = library.__name__
    found = []
    for module, attribute in (
        ("amp.grad_scaler", "OptState"), ("cuda.amp.grad_scaler", "GradScaler"),
        ("cuda.amp.autocast_mode", "autocast"), ("cuda.amp.autocast_mode", "custom_fwd"),
        ("cpu.amp.autocast_mode", "autocast"), ("cpu.amp.grad_scaler", "GradScaler"),
        ("cuda.amp.common", "amp_definitely_not_available"),
    ):  # fmt: skip
        found.append(getattr(importlib.import_module(f"{name}.{module}"), attribute).__name__)
    return found
