"""The advice that `flambeau.debug.advise` gives: one file per topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.debug.advice.base import Topic
from flambeau.debug.advice.broadcasts import BroadcastTwice, ReducedBroadcast
from flambeau.debug.advice.composed import ByHand, OnProbabilities
from flambeau.debug.advice.growing import GrowingCat, KeptGraph
from flambeau.debug.advice.half import HalfParameters, HalfRange, HalfSum
from flambeau.debug.advice.loaders import Duplicates
from flambeau.debug.advice.numbers import NumbersInLoop
from flambeau.debug.advice.scaling import ScaledClipping, ScaledStep
from flambeau.debug.advice.slices import SlicesInLoop
from flambeau.debug.advice.steps import GradsKept, StepWithoutGrads
from flambeau.debug.advice.train_mode import DropoutInEval, TrainMode

TOPICS: tuple[type[Topic], ...] = (
    SlicesInLoop, BroadcastTwice, ReducedBroadcast, ByHand, OnProbabilities, HalfRange, HalfSum,
    HalfParameters, ScaledClipping, ScaledStep, NumbersInLoop, Duplicates, TrainMode,
    DropoutInEval, GradsKept, StepWithoutGrads, KeptGraph, GrowingCat,
)  # fmt: skip


def topics_of(found: Callable[..., Any]) -> list[Topic]:
    """A fresh one of each; `found` takes what they find."""
    return [topic(found) for topic in TOPICS]
