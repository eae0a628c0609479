"""The order in which a stage runs the microbatches of a batch, forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from flambeau._core.missing import NotImplementedInFlambeau
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributed.pipelining.stage import PipelineStage

FORWARD, BACKWARD = "forward", "backward"
Step = tuple[str, int]
"""What is run, and the number of the microbatch."""


class _Schedule:
    """Splits batches along their first dim, and runs the parts in the order of `_order`.

    Args:
        stage: the stage of this process.
        n_microbatches: into how many parts a batch is split.
        loss_fn: of outputs and targets; None: there is no backward pass.
        args_chunk_spec, kwargs_chunk_spec, output_merge_spec: not implemented: everything is split
            and put together along the first dim.
        scale_grads: whether gradients are those of the mean of the losses, and not of the sum.

    Raises:
        ValueError: there are more stages than microbatches.
    """

    def __init__(self, stage: PipelineStage, n_microbatches: int,
                 loss_fn: Callable[..., Tensor] | None = None, args_chunk_spec: Any = None,
                 kwargs_chunk_spec: Any = None, output_merge_spec: Any = None,
                 scale_grads: bool = True) -> None:  # fmt: skip
        if (args_chunk_spec, kwargs_chunk_spec, output_merge_spec) != (None, None, None):
            raise NotImplementedInFlambeau(f"{type(self).__name__} with specs of chunks")
        if n_microbatches < stage.num_stages:
            raise ValueError(
                f"Number of microbatches ({n_microbatches}) must be greater than or equal to the "
                f"number of stages ({stage.num_stages})."
            )
        self._stage, self._count, self._loss_fn = stage, n_microbatches, loss_fn
        self.scale_grads = scale_grads

    def _order(self) -> Iterator[Step]:
        raise NotImplementedError

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
        order = self._order() if trains else _forwards(self._count)
        outputs = self._run(order, args, kwargs, target, losses, loss_kwargs or {}, trains)
        if trains and self.scale_grads:
            self._stage.scale_grads(self._count)
        return _joined(outputs) if self._stage.is_last and return_outputs else None

    def eval(self, *args: Any, target: Any = None, losses: list[Any] | None = None,
             **kwargs: Any) -> Any:  # fmt: skip
        """Run a whole batch forwards only; see `step`."""
        with no_grad():
            order = _forwards(self._count)
            outputs = self._run(order, args, kwargs, target, losses, {}, False)
        return _joined(outputs) if self._stage.is_last else None

    def _run(self, order: Iterator[Step], args: tuple[Any, ...], kwargs: dict[str, Any],
             target: Any, losses: list[Any] | None, loss_kwargs: dict[str, Any],
             trains: bool) -> list[Any]:  # fmt: skip
        parts = [_parts(each, self._count) for each in args]
        named = {name: _parts(each, self._count) for name, each in kwargs.items()}
        targets = _parts(target, self._count)
        outputs: dict[int, Any] = {}
        of_parts: dict[int, Any] = {}
        for kind, number in order:
            if kind == BACKWARD:
                self._stage.backward(number, of_parts.get(number))
                continue
            own = {name: each[number] for name, each in named.items()}
            ours = tuple(each[number] for each in parts)
            output = self._stage.forward(number, ours, own, trains)
            if self._stage.is_last:
                outputs[number] = _detached(output)
                if self._loss_fn is not None and target is not None:
                    of_parts[number] = self._loss_fn(output, targets[number], **loss_kwargs)
        if losses is not None:
            losses[:] = [of_parts[number] for number in sorted(of_parts)]
        return [outputs[number] for number in sorted(outputs)]


def _forwards(count: int) -> Iterator[Step]:
    return ((FORWARD, number) for number in range(count))


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


class ScheduleGPipe(_Schedule):
    """All microbatches forwards, then all backwards."""

    def _order(self) -> Iterator[Step]:
        yield from _forwards(self._count)
        yield from ((BACKWARD, number) for number in range(self._count))


class Schedule1F1B(_Schedule):
    """As soon as the pipeline is full, one microbatch forwards and one backwards in turn.

    A stage keeps what backward needs of one microbatch for itself and each stage behind it.
    """

    def _order(self) -> Iterator[Step]:
        behind = self._stage.num_stages - self._stage.stage_index
        ahead = min(self._count, behind)
        yield from _forwards(ahead)
        for number in range(self._count):
            yield BACKWARD, number
            if number + ahead < self._count:
                yield FORWARD, number + ahead
