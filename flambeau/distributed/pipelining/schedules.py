"""The order in which a stage runs the microbatches of a batch, forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from flambeau._core.missing import NotImplementedInFlambeau
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributed.pipelining.orders import (
    BACKWARD,
    Step,
    breadth_first,
    forwards,
    interleaved,
    one_forward_one_backward,
    rounds,
)
from flambeau.distributed.pipelining.stage import PipelineStage


class _Schedule:
    """Splits batches along their first dim, and runs the parts in some order.

    Raises:
        ValueError: there are more stages than microbatches.
    """

    _stages: list[PipelineStage]

    def _set(self, stages: list[PipelineStage], count: int, loss_fn: Any, scale_grads: bool,
             *specs: Any) -> None:  # fmt: skip
        if any(spec is not None for spec in specs):
            raise NotImplementedInFlambeau(f"{type(self).__name__} with specs of chunks")
        self._stages, self._count, self._loss_fn = stages, count, loss_fn
        self.scale_grads = scale_grads

    def _order(self, trains: bool) -> Iterator[Step]:
        raise NotImplementedError

    @property
    def _has_last(self) -> bool:
        return any(stage.is_last for stage in self._stages)

    def step(self, *args: Any, target: Any = None, losses: list[Any] | None = None,
             return_outputs: bool = True, loss_kwargs: dict[str, Any] | None = None,
             **kwargs: Any) -> Any:  # fmt: skip
        """Run a whole batch, and leave gradients in the parameters.

        The process of the first stage gives the batch, that of the last one the `target`.

        Args:
            losses: a list that gets the loss of each microbatch, on the last stage.
            return_outputs: whether the last stage returns the outputs.
            kwargs: for the module of this stage; tensors are split.

        Returns:
            The outputs of the whole batch on the last stage, None on others.
        """
        trains = self._loss_fn is not None
        outputs = self._run(args, kwargs, target, losses, loss_kwargs or {}, trains)
        if trains and self.scale_grads:
            for stage in self._stages:
                stage.scale_grads(self._count)
        return _joined(outputs) if self._has_last and return_outputs else None

    def eval(self, *args: Any, target: Any = None, losses: list[Any] | None = None,
             **kwargs: Any) -> Any:  # fmt: skip
        """Run a whole batch forwards only; see `step`."""
        with no_grad():
            outputs = self._run(args, kwargs, target, losses, {}, False)
        return _joined(outputs) if self._has_last else None

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any], target: Any,
             losses: list[Any] | None, loss_kwargs: dict[str, Any],
             trains: bool) -> list[Any]:  # fmt: skip
        parts = [_parts(each, self._count) for each in args]
        named = {name: _parts(each, self._count) for name, each in kwargs.items()}
        targets = _parts(target, self._count)
        outputs: dict[int, Any] = {}
        of_parts: dict[int, Any] = {}
        for step in self._order(trains):
            stage, number = self._stages[step.place], step.number
            if step.kind == BACKWARD:
                stage.backward(number, of_parts.get(number) if stage.is_last else None)
                continue
            own = {name: each[number] for name, each in named.items()}
            ours = tuple(each[number] for each in parts)
            output = stage.forward(number, ours, own, trains)
            if stage.is_last:
                outputs[number] = _detached(output)
                if self._loss_fn is not None and target is not None:
                    of_parts[number] = self._loss_fn(output, targets[number], **loss_kwargs)
        for stage in self._stages:
            stage.finish()
        if losses is not None:
            losses[:] = [of_parts[number] for number in sorted(of_parts)]
        return [outputs[number] for number in sorted(outputs)]


def _parts(value: Any, count: int) -> Any:
    """Microbatches of a tensor; the same for all of anything else."""
    if not isinstance(value, Tensor):
        return [value] * count
    parts: Any = ops.tensor_split(value, count)
    if value.size(0) < count:
        raise RuntimeError(f"a batch of {value.size(0)} cannot be split into {count} microbatches")
    return parts


def _detached(output: Any) -> Any:
    if isinstance(output, tuple | list):
        return tuple(each.detach() for each in output)
    return output.detach()


def _joined(outputs: list[Any]) -> Any:
    if isinstance(outputs[0], tuple):
        return tuple(ops.cat(list(each)) for each in zip(*outputs, strict=True))
    return ops.cat(outputs)


class _SingleSchedule(_Schedule):
    """One stage for each process.

    Args:
        stage: the stage of this process.
        n_microbatches: into how many parts a batch is split.
        loss_fn: of outputs and targets; None: there is no backward pass.
        args_chunk_spec, kwargs_chunk_spec, output_merge_spec: not implemented: everything is split
            and put together along the first dim.
        scale_grads: whether gradients are those of the mean of the losses, and not of the sum.
    """

    def __init__(self, stage: PipelineStage, n_microbatches: int,
                 loss_fn: Callable[..., Tensor] | None = None, args_chunk_spec: Any = None,
                 kwargs_chunk_spec: Any = None, output_merge_spec: Any = None,
                 scale_grads: bool = True) -> None:  # fmt: skip
        if n_microbatches < stage.num_stages:
            raise ValueError(
                f"Number of microbatches ({n_microbatches}) must be greater than or equal to the "
                f"number of stages ({stage.num_stages})."
            )
        if stage.num_stages != stage.group_size:
            raise NotImplementedInFlambeau(
                f"{type(self).__name__} of {stage.num_stages} stages in a group of "
                f"{stage.group_size} processes: one stage each"
            )
        self._set([stage], n_microbatches, loss_fn, scale_grads, args_chunk_spec,
                  kwargs_chunk_spec, output_merge_spec)  # fmt: skip


class ScheduleGPipe(_SingleSchedule):
    """All microbatches forwards, then all backwards."""

    def _order(self, trains: bool) -> Iterator[Step]:
        yield from forwards(self._count)
        if trains:
            yield from (Step(BACKWARD, number) for number in range(self._count))


class Schedule1F1B(_SingleSchedule):
    """As soon as the pipeline is full, one microbatch forwards and one backwards in turn.

    A stage keeps what backward needs of one microbatch for itself and each stage behind it.
    """

    def _order(self, trains: bool) -> Iterator[Step]:
        if not trains:
            return forwards(self._count)
        behind = self._stages[0].num_stages - self._stages[0].stage_index
        return one_forward_one_backward(self._count, behind)


class _MultiSchedule(_Schedule):
    """Several stages for each process: of `n` processes, that of rank r has r, r + n, ..."""

    def _set(self, stages: list[PipelineStage], count: int, loss_fn: Any, scale_grads: bool,
             *specs: Any) -> None:  # fmt: skip
        first = stages[0]
        indices = [stage.stage_index for stage in stages]
        wanted = list(range(first.group_rank, first.num_stages, first.group_size))
        if indices != wanted:
            raise ValueError(f"this process has to have the stages {wanted}, and has {indices}")
        super()._set(list(stages), count, loss_fn, scale_grads, *specs)


class ScheduleInterleaved1F1B(_MultiSchedule):
    """1F1B with several stages for each process, which waits less while the pipeline fills.

    Args:
        stages: the stages of this process, from the first on.
        n_microbatches: into how many parts a batch is split: a multiple of the number of rounds,
            which is how often as many microbatches as there are processes go into them.
        loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads: as in
            `Schedule1F1B`.
        backward_requires_autograd, defer_pp_recv: other values than the defaults are not
            implemented.

    Raises:
        ValueError: another number of microbatches, or other stages.
    """

    def __init__(self, stages: list[PipelineStage], n_microbatches: int,
                 loss_fn: Callable[..., Tensor] | None = None, args_chunk_spec: Any = None,
                 kwargs_chunk_spec: Any = None, output_merge_spec: Any = None,
                 scale_grads: bool = True, backward_requires_autograd: bool = True,
                 defer_pp_recv: bool = False) -> None:  # fmt: skip
        _check_defaults(self, backward_requires_autograd, defer_pp_recv)
        turns = rounds(n_microbatches, stages[0].group_size)
        if n_microbatches % turns:
            raise ValueError(
                "Interleaved 1F1B requires the number of microbatches to be a multiple of the "
                f"number of rounds ({turns}), but got {n_microbatches}."
            )
        self._set(stages, n_microbatches, loss_fn, scale_grads, args_chunk_spec,
                  kwargs_chunk_spec, output_merge_spec)  # fmt: skip

    def _order(self, trains: bool) -> Iterator[Step]:
        first = self._stages[0]
        return interleaved(self._count, len(self._stages), first.group_rank, first.group_size,
                           trains)  # fmt: skip


class ScheduleLoopedBFS(_MultiSchedule):
    """All microbatches through a stage, then all through the next one of this process; then back.

    Args:
        stages, n_microbatches, loss_fn, output_merge_spec, scale_grads,
            backward_requires_autograd, defer_pp_recv: as in `ScheduleInterleaved1F1B`, with any
            number of microbatches.
    """

    def __init__(self, stages: list[PipelineStage], n_microbatches: int,
                 loss_fn: Callable[..., Tensor] | None = None, output_merge_spec: Any = None,
                 scale_grads: bool = True, backward_requires_autograd: bool = True,
                 defer_pp_recv: bool = False) -> None:  # fmt: skip
        _check_defaults(self, backward_requires_autograd, defer_pp_recv)
        self._set(stages, n_microbatches, loss_fn, scale_grads, output_merge_spec)

    def _order(self, trains: bool) -> Iterator[Step]:
        return breadth_first(self._count, len(self._stages), trains)


def _check_defaults(schedule: Any, backward_requires_autograd: bool, defer_pp_recv: bool) -> None:
    if not backward_requires_autograd or defer_pp_recv:
        raise NotImplementedInFlambeau(
            f"{type(schedule).__name__}(backward_requires_autograd=False, defer_pp_recv=True)"
        )
