"""What a GradScaler tells a fused optimizer: `grad_scale` and `found_inf`, attributes for one step.

The step divides the gradients, in their memory, and is left out where one of them is infinite.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core.dtype import float32
from flambeau.optim.options import Group


class Scale:
    """What gradients are divided by (None: nothing), and whether to step at all."""

    __slots__ = ("divisor", "left_out")

    def __init__(self, divisor: np.float32 | None, left_out: bool) -> None:
        self.divisor = divisor
        self.left_out = left_out


AS_IT_IS = Scale(None, False)


def scale_for(optimizer: Any, group: Group) -> Scale:
    """The scale of a step; only a fused one may have a scale."""
    given = optimizer.__dict__
    scale, found = given.get("grad_scale"), given.get("found_inf")
    if scale is None and found is None:
        return AS_IT_IS
    if not group["fused"]:
        raise AssertionError("Expected grad_scale and found_inf to be None")
    divisor, bad = _first(scale), _first(found)
    return Scale(divisor, bad == 1)


def _first(value: Any) -> Any:
    """The first number of a tensor; None if there is none. Without gradients it is a plain 0."""
    if value is None or isinstance(value, int):
        return value
    values = value.to("cpu")
    if value.dtype is not float32:
        raise RuntimeError(f"expected scalar type Float but found {value.dtype.scalar_name}")
    return values._data.reshape(-1)[0] if values.numel() else None


def divide(params: list[Any], divisor: np.float32) -> None:
    """Divide gradients, in their memory. Halves are divided where they are widened."""
    for parameter in params:
        data = parameter._grad._data
        if data.dtype.kind == "f" and data.itemsize >= 4:  # noqa: PLR2004
            np.divide(data, data.dtype.type(divisor), out=data)


def widened(grad: np.ndarray, divisor: np.float32 | None) -> np.ndarray:
    """Half gradients in float32, divided; what they are rounded to is left in their memory."""
    wide = grad.astype(np.float32)
    if divisor is not None:
        wide /= divisor
        grad[...] = wide
    return wide
