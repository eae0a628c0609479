"""Optimizers, one class each, and learning-rate schedules."""

from __future__ import annotations

import importlib
from typing import Any

from flambeau.optim.adagrad import Adagrad
from flambeau.optim.adam import Adam, AdamW
from flambeau.optim.optimizer import Optimizer
from flambeau.optim.rmsprop import RMSprop
from flambeau.optim.sgd import SGD

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]


def __getattr__(name: str) -> Any:
    if name == "lr_scheduler":
        return importlib.import_module("flambeau.optim.lr_scheduler")
    from flambeau._core.missing import missing

    return missing(__name__, name)
