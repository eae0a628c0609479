"""Dropout and batch norm that behave as in training when nothing is trained, or the other way."""

from __future__ import annotations

import sys
import weakref
from typing import Any

from flambeau._core import modes
from flambeau._tensor.tensor import Tensor
from flambeau.debug.advice.base import Topic
from flambeau.debug.places import Line, Place

ENOUGH = 4
"""Forwards without gradients and without a step of training between them."""
ON_PURPOSE = ("checkpoint.py", "swa_utils.py")
"""Files of ours that run a model in train mode without gradients, and have to."""


class Pending:
    """Forwards of one model since the last backward."""

    def __init__(self, line: Line, text: str) -> None:
        self.line, self.text = line, text
        self.count = 0
        self.seconds = 0.0
        self.last: Any = lambda: None
        self.averaged = False  # the same input came again: that is done on purpose


class TrainMode(Topic):
    """A model with dropout or batch norm in train mode under `no_grad`.

    What backward follows on, such as the images of a generator for its critic, is training. So is
    the same input again and again: an average over dropout.
    """

    title = "train mode under no_grad"

    def __init__(self, found: Any) -> None:
        super().__init__(found)
        self.layers: weakref.WeakKeyDictionary[Any, tuple[str, ...]] = weakref.WeakKeyDictionary()
        self.pending: dict[tuple[int, Place], Pending] = {}
        self.current: Pending | None = None

    def enter(self, module: Any, given: Any, line: Line, outer: tuple[Any, ...]) -> None:
        """Look at models, that is, at modules that no other module calls."""
        if outer:
            return
        self.current = None
        if modes.grad.enabled or not module.training or not self._changing(module):
            return
        if runs_within(*ON_PURPOSE):
            return
        key = (id(module), line.place)
        if key not in self.pending:
            self.pending[key] = Pending(line, self._text(module))
        pending = self.pending[key]
        first = next((value for value in given if isinstance(value, Tensor)), None)
        pending.averaged |= first is not None and pending.last() is first
        pending.last = weakref.ref(first) if first is not None else lambda: None
        self.current = pending

    def leave(self, module: Any, seconds: float, outer: tuple[Any, ...]) -> None:
        """Count a forward."""
        if outer or self.current is None:
            return
        self.current.count += 1
        self.current.seconds += seconds
        if self.current.count >= ENOUGH:
            self._tell(self.current)
        self.current = None

    def backward(self, roots: list[Any], line: Line) -> None:
        """What came before belongs to training."""
        self.pending.clear()

    def end(self) -> None:
        """No backward has followed."""
        for pending in self.pending.values():
            self._tell(pending)

    def _tell(self, pending: Pending) -> None:
        if pending.count and not pending.averaged:
            better = "model.eval()\nwith torch.no_grad(): ...\nmodel.train()  # before training on"
            self.add(pending.line, pending.text, better, pending.count, pending.seconds, "forward")
        pending.count, pending.seconds = 0, 0.0

    def _changing(self, model: Any) -> tuple[str, ...]:
        """The names of the layers that behave differently in training, few first."""
        if model not in self.layers:
            found = [f"{name} ({type(m).__name__})" for name, m in model.named_modules()
                     if m is not model and m.training and is_changing(m)]  # fmt: skip
            self.layers[model] = tuple(found)
        return self.layers[model]

    def _text(self, model: Any) -> str:
        names = self._changing(model)
        more = f" and {len(names) - 2} others" if len(names) > 2 else ""  # noqa: PLR2004
        return f"{type(model).__name__} is in train mode: {', '.join(names[:2])}{more}"


def is_changing(module: Any) -> bool:
    """Whether a layer drops elements, or takes its statistics from the batch."""
    from flambeau.nn.layers.batchnorm import _BatchNorm
    from flambeau.nn.layers.dropout import _DropoutNd

    if isinstance(module, _DropoutNd):
        return module.p > 0
    # With momentum=None, statistics are averaged over a pass on purpose.
    return isinstance(module, _BatchNorm) and module.momentum is not None


def runs_within(*names: str) -> bool:
    """Whether one of these files of ours is running."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.endswith(names):
            return True
        frame = frame.f_back
    return False


class DropoutInEval(Topic):
    """`F.dropout(x, p)` in a module: its `training` is True unless it is given."""

    title = "dropout in eval mode"

    def dropout(self, tensor: Tensor, line: Line, outer: tuple[Any, ...]) -> None:
        """Compare with the mode of the module that calls it."""
        if not outer or outer[-1].training or outer[0].training:
            return
        text = f"F.dropout drops elements in {type(outer[-1]).__name__}, which is in eval mode"
        self.add(line, text, "F.dropout(x, p, training=self.training)")
