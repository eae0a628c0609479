"""`torch.distributed.pipelining`: a model in stages, each in a process of its own."""

from __future__ import annotations

from flambeau._core.absent import absent_class, absent_function
from flambeau.distributed.pipelining.schedules import (
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
)
from flambeau.distributed.pipelining.stage import PipelineStage

ABSENT = (
    "Pipe SplitPoint ScheduleInterleavedZeroBubble ScheduleZBVZeroBubble ScheduleDualPipeV"
).split()
"""Classes that are missing."""
globals().update({name: absent_class(f"torch.distributed.pipelining.{name}") for name in ABSENT})
pipe_split = absent_function("torch.distributed.pipelining.pipe_split")
pipeline = absent_function("torch.distributed.pipelining.pipeline")
build_stage = absent_function("torch.distributed.pipelining.build_stage")

__all__ = [
    "PipelineStage",
    "Schedule1F1B",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleLoopedBFS",
]
