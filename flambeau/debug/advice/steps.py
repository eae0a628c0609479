"""The order of backward, step and zero_grad."""

from __future__ import annotations

import weakref
from typing import Any

from flambeau.debug.advice.base import Topic
from flambeau.debug.advice.scaling import parameters_of
from flambeau.debug.places import Line

LOOKED_AT = 4
"""Gradients that are looked at to see whether they were cleared."""
ENOUGH = 2
"""Steps in a row with gradients of earlier steps in them."""


class GradsKept(Topic):
    """Backward, step, backward, step, with no `zero_grad` between: gradients add up."""

    title = "gradients of earlier steps"

    def __init__(self, found: Any) -> None:
        super().__init__(found)
        self.used: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
        self.added: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.dirty: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()

    def backward(self, roots: list[Any], line: Line) -> None:
        """Whether the gradients of the last steps are still there."""
        for optimizer, grads in self.used.items():
            left = [ref for ref in grads if ref() is not None and ref()._data.any()]
            if left:
                self.dirty[optimizer] = left
            else:
                self.dirty.pop(optimizer, None)
                self.added.pop(optimizer, None)

    def step(self, optimizer: Any, line: Line) -> None:
        """A step with such gradients, and more added to them."""
        grads = [p._grad for p in parameters_of(optimizer) if p._grad is not None]
        left = [ref() for ref in self.dirty.pop(optimizer, ())]
        if any(old is grad for old in left for grad in grads):
            count = self.added[optimizer] = self.added.get(optimizer, 0) + 1
            if count >= ENOUGH:
                text = (f"{type(optimizer).__name__} steps with the gradients of {count + 1} "
                        "backward passes, the earlier ones stepped with before")  # fmt: skip
                better = "optimizer.zero_grad()\nloss.backward()\noptimizer.step()"
                self.add(line, text, better, unit="step")
        dense = [grad for grad in grads if not grad.is_sparse]
        self.used[optimizer] = [weakref.ref(grad) for grad in dense[:LOOKED_AT]]


class StepWithoutGrads(Topic):
    """`zero_grad` between backward and step: the step changes nothing."""

    title = "a step without gradients"

    def __init__(self, found: Any) -> None:
        super().__init__(found)
        self.since = 0  # backward passes since the last step of any optimizer

    def backward(self, roots: list[Any], line: Line) -> None:
        """Count."""
        self.since += 1

    def step(self, optimizer: Any, line: Line) -> None:
        """Backward was called, and there are no gradients."""
        parameters = parameters_of(optimizer)
        empty = all(parameter._grad is None for parameter in parameters)
        if empty and self.since:
            text = (f"none of the {len(parameters)} parameters of {type(optimizer).__name__} has a "
                    "gradient, though backward was called: nothing is learned")  # fmt: skip
            better = """\
optimizer.zero_grad()
loss.backward()  # of a loss that this optimizer's parameters lead to
optimizer.step()"""
            self.add(line, text, better, unit="step")
        self.since = 0
