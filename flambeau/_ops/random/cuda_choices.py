"""Choices by weight on a CUDA device: a race of exponential numbers, computed there."""

from __future__ import annotations

from typing import Any

from flambeau._core.random_sample import INVALID_SUM, INVALID_WEIGHTS, check_multinomial
from flambeau._ops.cuda.table import on_gpu
from flambeau._ops.table.namespace import ops
from flambeau._tensor.device_array import DeviceArray
from flambeau._tensor.tensor import wrap


@on_gpu("multinomial")
def multinomial(weights: DeviceArray, num_samples: int, replacement: bool, generator: Any) -> Any:
    """Indices drawn without replacement, or one of each row; the host is asked for nothing but
    whether the weights are a distribution."""
    if replacement and num_samples != 1:
        return NotImplemented
    check_multinomial(weights, num_samples, replacement)
    weight = wrap(weights)
    if not bool((ops.amin(weight) >= 0) & (ops.amax(weight) < float("inf"))):
        raise RuntimeError(INVALID_WEIGHTS)
    if not bool((ops.amax(weight, -1) > 0).all()):
        raise RuntimeError(INVALID_SUM)
    race = weight / ops.empty_like(weight).exponential_(generator=generator)
    if num_samples == 1:
        return race.argmax(-1, True)._data
    return race.topk(num_samples, -1)[1]._data
