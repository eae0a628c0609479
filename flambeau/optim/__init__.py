"""Optimizers, one class each, learning-rate schedules, averages of weights."""

from __future__ import annotations

import importlib
from typing import Any

from flambeau.optim.adadelta import Adadelta
from flambeau.optim.adafactor import Adafactor
from flambeau.optim.adagrad import Adagrad
from flambeau.optim.adam import Adam, AdamW
from flambeau.optim.adamax import Adamax
from flambeau.optim.asgd import ASGD
from flambeau.optim.lbfgs import LBFGS
from flambeau.optim.muon import Muon
from flambeau.optim.nadam import NAdam
from flambeau.optim.optimizer import Optimizer
from flambeau.optim.radam import RAdam
from flambeau.optim.rmsprop import RMSprop
from flambeau.optim.rprop import Rprop
from flambeau.optim.sgd import SGD
from flambeau.optim.sparse_adam import SparseAdam

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon",
    "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "SparseAdam", "lr_scheduler", "swa_utils",
    "swap_in_optimizer_params_and_state",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("lr_scheduler", "swa_utils", "adamw"):
        return importlib.import_module(f"flambeau.optim.{name}")
    if name == "swap_in_optimizer_params_and_state":
        from flambeau.optim.swap_in import swap_in_optimizer_params_and_state

        return swap_in_optimizer_params_and_state
    from flambeau._core.missing import missing

    return missing(__name__, name)
