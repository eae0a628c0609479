"""What DistributedDataParallel does in a process whose inputs have ended."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau.distributed import collectives
from flambeau.distributed.algorithms.join import JoinHook
from flambeau.distributed.reduce_op import RedOpType


def of_all(model: Any, own: float, operation: RedOpType) -> float:
    """One number, reduced over the processes of a model."""
    number: Any = ops.full((1,), own)
    collectives.all_reduce(number, operation, model.process_group)
    return float(number)


class DataParallelJoinHook(JoinHook):
    """Meets the collectives of forward and backward, in their order."""

    def __init__(self, model: Any, divides_by_all: bool) -> None:
        self._model = model
        model.reducer.divides_by_all = divides_by_all

    def main_hook(self) -> None:
        """One iteration: whether gradients are averaged, buffers, buckets."""
        model = self._model
        averages = of_all(model, 0.0, RedOpType.SUM) > 0
        if not averages:
            return
        if model.broadcast_buffers and model.training and any(True for _ in model.module.buffers()):
            source = int(of_all(model, -1.0, RedOpType.MAX))
            model._take_over(model.module.buffers(), source)
        model.reducer.meet()

    def post_hook(self, is_last_joiner: bool) -> None:
        """All take what the last one has."""
        model = self._model
        source = int(of_all(model, model._rank_if(is_last_joiner), RedOpType.MAX))
        model._take_over((*model.module.parameters(), *model.module.buffers()), source)
        model.reducer.divides_by_all = True
        model.reducer._divisor = model.process_group.size()
