"""Learning-rate schedules: each sets `group["lr"]` when its `step()` is called.

| File | Schedules |
|---|---|
| `base.py` | `LRScheduler`: counting epochs, writing rates, warnings, checkpoints |
| `functions.py` | `LambdaLR`, `MultiplicativeLR`: the user's functions |
| `decay.py` | in steps, constant, linear, polynomial, exponential |
| `cosine.py` | along a cosine, with warm restarts |
| `cycles.py` | `CyclicLR`, `OneCycleLR`, which move momentum too |
| `plateau.py` | `ReduceLROnPlateau`, which looks at a measure |
| `composed.py` | `SequentialLR`, `ChainedScheduler`: schedules made of schedules |
"""

from __future__ import annotations

from typing import NoReturn

from flambeau._core.missing import lazily
from flambeau._tensor.tensor import Tensor
from flambeau.optim.lr_scheduler.base import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    _enable_get_lr_call,
    _LRScheduler,
    _warn_get_lr_called_within_step,
)
from flambeau.optim.lr_scheduler.composed import ChainedScheduler, SequentialLR
from flambeau.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from flambeau.optim.lr_scheduler.cycles import CyclicLR, OneCycleLR
from flambeau.optim.lr_scheduler.decay import (
    ConstantLR,
    ExponentialLR,
    LinearLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from flambeau.optim.lr_scheduler.functions import LambdaLR, MultiplicativeLR
from flambeau.optim.lr_scheduler.plateau import ReduceLROnPlateau
from flambeau.optim.optimizer import Optimizer

__all__ = [
    "LambdaLR", "MultiplicativeLR", "StepLR", "MultiStepLR", "ConstantLR", "LinearLR",
    "ExponentialLR", "SequentialLR", "CosineAnnealingLR", "ChainedScheduler", "ReduceLROnPlateau",
    "CyclicLR", "CosineAnnealingWarmRestarts", "OneCycleLR", "PolynomialLR", "LRScheduler",
]  # fmt: skip


__getattr__ = lazily(__name__)
