"""Gradients divided by the scale and looked through for inf and NaN, in one pass over all; and
what becomes of the scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._runtime import choice
from flambeau._runtime.cpu import address
from flambeau._runtime.cuda.memory import Current
from flambeau._tensor.device_array import DeviceArray
from flambeau.autograd.history import bump


def _amp_foreach_non_finite_check_and_unscale_(self: Any, found_inf: Any, inv_scale: Any) -> None:
    """Multiply gradients in place by a number; `found_inf` gets 1.0 where one of them is infinite
    or NaN."""
    if _are_there(found_inf, inv_scale):
        self = _on_device(self, found_inf, inv_scale)
        if not self:
            return
    inverse = np.float32(inv_scale.item())
    by_type: dict[Any, list[Any]] = {}
    for grad in self:
        by_type.setdefault(grad._data.dtype, []).append(grad)
    found = [unscale(grads, inverse) for grads in by_type.values()]  # all of them
    if any(found):
        found_inf.fill_(1.0)


def _amp_update_scale_(self: Any, growth_tracker: Any, found_inf: Any, scale_growth_factor: float,
                       scale_backoff_factor: float, growth_interval: int) -> Any:  # fmt: skip
    """Shrink a scale where gradients were infinite; let it grow after so many good steps."""
    if _are_there(self, found_inf) and growth_tracker._data.__class__ is self._data.__class__:
        from flambeau._ops.cuda.optimizers import next_scale

        next_scale(self._data, growth_tracker._data, found_inf._data, scale_growth_factor,
                   scale_backoff_factor, growth_interval)  # fmt: skip
        bump(self)
        bump(growth_tracker)
        return self
    if found_inf.item():
        self.fill_(_product(self, scale_backoff_factor))
        growth_tracker.fill_(0)
        return self
    successes = growth_tracker.item() + 1
    if successes == growth_interval:
        grown = _product(self, scale_growth_factor)
        if np.isfinite(grown):
            self.fill_(grown)
        successes = 0
    growth_tracker.fill_(successes)
    return self


def _product(scale: Any, factor: float) -> float:
    """The scale times a factor, rounded once to float32."""
    with np.errstate(over="ignore"):
        return float(np.float32(scale.item() * factor))


def _are_there(*numbers: Any) -> bool:
    """Whether single numbers are float32 and lie on the current GPU."""
    return all(
        isinstance(number._data, DeviceArray) and number._data.dtype == FLOAT32
        and number._data.size == 1 and number._data.place.index == Current.device
        for number in numbers
    )  # fmt: skip


def _on_device(grads: list[Any], found_inf: Any, inv_scale: Any) -> list[Any]:
    """Unscale gradients on their device, where `found_inf` and `inv_scale` lie, without asking for
    a number; returns those that no kernel is for."""
    from flambeau._ops.cuda import optimizers as kernels

    by_type: dict[Any, list[Any]] = {}
    rest = []
    for grad in grads:
        fits = isinstance(grad._data, DeviceArray) and kernels.suits(grad._data)
        if fits and grad._data.place.index == Current.device:
            by_type.setdefault(grad._data.dtype, []).append(grad)
        else:
            rest.append(grad)
    for alike in by_type.values():
        kernels.unscale([grad._data for grad in alike], inv_scale._data, found_inf._data)
        for grad in alike:
            bump(grad)
        bump(found_inf)
    return rest


FLOAT32 = np.dtype(np.float32)
PLAIN = (np.dtype(np.float32), np.dtype(np.float64))


@choice.guard
def unscale(grads: list[Any], inverse: Any) -> bool:
    """Multiply gradients of one type in place; whether one of them was infinite or NaN."""
    for_kernel: list[Any] = []
    rest: list[Any] = []
    for grad in grads:
        (for_kernel if _is_for_kernel(grad._data) else rest).append(grad)
    if not choice.compiled("optimizer", sum([grad._data.size for grad in for_kernel])):
        for_kernel, rest = [], grads
    found = _by_kernel(for_kernel, inverse) if for_kernel else False
    for grad in rest:
        found = not bool(grad.isfinite().all()) or found
        grad.mul_(float(inverse))
    return found


def _is_for_kernel(data: np.ndarray) -> bool:
    flags = data.flags
    if data.__class__ is not np.ndarray:
        return False
    return data.dtype in PLAIN and flags.c_contiguous and flags.writeable and data.size > 0


def _by_kernel(grads: list[Any], inverse: Any) -> bool:
    from flambeau._ops.launching.block_tables import set_blocks, tasks_for, typed_kernel
    from flambeau._ops.optimizers.kernels import steps as kernels

    dtype = grads[0]._data.dtype
    table = np.zeros((len(grads) + 1, 3), np.int64)
    table[:-1, 1] = [grad._data.size for grad in grads]
    table[:-1, 2] = [address(grad._data) for grad in grads]
    set_blocks(table, kernels.BLOCK)
    found = np.zeros(1, dtype)
    blocks = int(table[-1, 0])
    kernel = typed_kernel(kernels.unscale, dtype)
    kernel.parallel(tasks_for(blocks), table, np.array([inverse], dtype), found, 3, blocks)
    for grad in grads:
        bump(grad)
    return bool(found[0])
