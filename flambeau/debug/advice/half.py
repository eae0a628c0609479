"""float16 where its range or its precision is not enough."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core.dtype import bfloat16, float16
from flambeau._tensor.tensor import Tensor
from flambeau.debug.advice.base import Call, Topic, kind
from flambeau.debug.advice.loops import in_loop, key_of
from flambeau.debug.advice.rows import is_elementwise, is_loss, is_wide
from flambeau.debug.places import Line

HALF = float16.numpy_dtype
HALVES = (HALF, bfloat16.numpy_dtype)
ARITHMETIC = ("div", "mul", "square")
"""Operators that autocast leaves in float16, whose results leave its range."""
LARGEST = 65504


class HalfRange(Topic):
    """A loss in float16 while training, and results that leave the range of float16."""

    title = "float16"

    def wants(self, name: str) -> bool:
        """Operators whose results leave float16's range soonest."""
        return name in ARITHMETIC or is_loss(name) or is_wide(name)

    def operator(self, call: Call) -> None:
        """Look at calls whose first operand is in float16, and was not cast by autocast."""
        first, result = call.values[0], call.result
        if not is_half(first) or not isinstance(result, Tensor):
            return
        lost = overflows(call)
        if lost:
            text = (f"{call.name} of {kind(first)} made {lost} inf of finite numbers: float16 ends "
                    f"at {LARGEST:,}")  # fmt: skip
        elif is_loss(call.name) and result.requires_grad and result._data.dtype == HALF:
            text = (f"{call.name} of {kind(first)} is computed in float16, outside of autocast: it "
                    "has three digits, and small gradients are 0")  # fmt: skip
        else:
            return
        self.add(call.line, text, BETTER.format(call.name), 1, call.seconds)


BETTER = """\
{}(x.float(), ...), or in a region where float32 is chosen:
with torch.autocast(device, torch.float16): ..."""


def is_half(value: Any) -> bool:
    """Whether a value is a tensor in float16."""
    return isinstance(value, Tensor) and value.dtype is float16


def overflows(call: Call) -> int:
    """How many infinities an operator made of finite numbers."""
    data = call.result._data
    if data.dtype != HALF or np.isfinite(np.add.reduce(data, None, np.float32)):
        return 0
    given = [value._data for value in call.values if isinstance(value, Tensor)]
    if not all(np.isfinite(part).all() for part in given):
        return 0
    ends = np.isinf(data)
    if is_elementwise(call.name):
        ends &= ~np.isin(np.broadcast_to(given[-1], data.shape), POLES)
    return int(ends.sum())


POLES = (-1, 0, 1)
"""Where elementwise functions are infinite whatever the type: `log(0)`, `1 / 0`, `erfinv(1)`."""


ENOUGH = 8
"""Sums that were lost, at one line, before it is said."""
PLACES = 64
"""Lines that are followed at a time."""


class HalfSum(Topic):
    """`total += loss` in float16 or bfloat16, where the sum is too large to change any more."""

    title = "a sum that stands still"
    operators = ("add",)

    def __init__(self, found: Any) -> None:
        super().__init__(found)
        self.lost: dict[Any, int] = {}

    def operator(self, call: Call) -> None:
        """Count sums that equal their first operand, though the second is not 0."""
        total, part = call.values[:2]
        if not (isinstance(total, Tensor) and isinstance(part, Tensor)):
            return
        data = part._data
        if data.dtype not in HALVES or data.dtype != total._data.dtype:
            return
        if call.result._data.size != 1 or not is_lost(call) or not in_loop(call.line):
            return
        if len(self.lost) >= PLACES:
            self.lost.clear()
        count = self.lost[key_of(call.line)] = self.lost.get(key_of(call.line), 0) + 1
        if count >= ENOUGH:
            text = (f"adding {data.item():.4g} does not change a total of "
                    f"{call.result._data.item():.4g} in {call.result.dtype}")  # fmt: skip
            better = "total += part.float(), or total = 0.0 and total += part.item()"
            self.add(call.line, text, better, count if count == ENOUGH else 1, call.seconds)


def is_lost(call: Call) -> bool:
    """Whether what was added is less than half of the step from the sum to the next number."""
    step = np.spacing(call.result._data).item()
    return 0 < abs(call.values[1]._data.item()) <= step / 2


class HalfParameters(Topic):
    """An optimizer that steps parameters in float16."""

    title = "float16 parameters"

    def step(self, optimizer: Any, line: Line) -> None:
        """Look at the types of the parameters."""
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        found = [p for p in parameters if is_half(p) and p._grad is not None]
        if not found:
            return
        text = (f"{len(found)} parameters in float16, {kind(found[0])} and others: steps below a "
                "2048th of a weight are lost")  # fmt: skip
        better = """\
keep the model in float32 (no .half()), and cast where it is run:
with torch.autocast(device, torch.float16): loss = ...
scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()"""
        self.add(line, text, better, 1, unit="step")
