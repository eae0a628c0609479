"""One stage of a pipeline: what it gets from the stage before, and gives to the one behind."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from flambeau._core.missing import NotImplementedInFlambeau
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd import backward
from flambeau.distributed import messages, objects
from flambeau.distributed.work import Work
from flambeau.distributed.world import the_group
from flambeau.nn.module import Module


class PipelineStage:
    """A part of a model that runs in this process.

    Args:
        submodule: the part. It takes what the stage before returns, a tensor or a tuple of tensors.
        stage_index: its place among the stages; stage i is in the process of rank i of the group,
            or, where there are more stages than processes, i modulo their number.
        num_stages: how many there are, as many for each process.
        device: where its parameters are.
        input_args, output_args, output_grads, input_grads: without meaning here; shapes travel with
            the data.
        group: the processes; None for all.
        dw_builder, get_mesh: not implemented.
    """

    def __init__(self, submodule: Module, stage_index: int, num_stages: int, device: Any,
                 input_args: Any = None, output_args: Any = None, output_grads: Any = None,
                 input_grads: Any = None, group: Any = None, dw_builder: Any = None,
                 get_mesh: Any = None) -> None:  # fmt: skip
        if stage_index >= num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        if dw_builder is not None or get_mesh is not None:
            raise NotImplementedInFlambeau("PipelineStage(dw_builder=..., get_mesh=...)")
        self.submod, self.stage_index, self.num_stages = submodule, stage_index, num_stages
        self.device, self.group = device, the_group(group)
        self.group_rank, self.group_size = self.group.rank(), self.group.size()
        if num_stages % self.group_size:
            raise NotImplementedInFlambeau(
                f"{num_stages} stages in a group of {self.group_size} processes: as many each"
            )
        if stage_index % self.group_size != self.group_rank:
            raise NotImplementedInFlambeau(
                f"stage {stage_index} in the process of rank {self.group_rank} of "
                f"{self.group_size}: stages lie in turn"
            )
        self.is_first, self.is_last = stage_index == 0, stage_index == num_stages - 1
        self._inputs: dict[int, tuple[Any, ...]] = {}
        self._outputs: dict[int, tuple[Any, ...]] = {}
        self._going: deque[Work] = deque()

    def forward(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any],
                trains: bool) -> Any:  # fmt: skip
        """Run one microbatch; what the module returned."""
        inputs = args if self.is_first else self._receive(trains)
        output = self.submod(*inputs, **kwargs)
        outputs = tuple(output) if isinstance(output, tuple | list) else (output,)
        if trains:
            self._inputs[number], self._outputs[number] = inputs, outputs
        if not self.is_last:
            self._tell(outputs)
        return output

    def backward(self, number: int, loss: Any) -> None:
        """The backward pass of one microbatch; the last stage starts with its loss."""
        inputs, outputs = self._inputs.pop(number), self._outputs.pop(number)
        if self.is_last:
            loss.backward()
        else:
            made = [each for each in outputs if _has_grad(each)]
            grads = [self._receive_like(each) for each in made]
            backward(
                [each for each in made if each.requires_grad],
                [grad for each, grad in zip(made, grads, strict=True) if each.requires_grad],
            )
        if self.is_first:
            return
        for each in inputs:
            if _has_grad(each):
                grad = each.grad if each.grad is not None else ops.zeros_like(each)
                self._send(grad.contiguous(), -1)

    def scale_grads(self, factor: int) -> None:
        """Divide the gradients of the parameters by the number of microbatches."""
        for parameter in self.submod.parameters():
            if parameter.grad is not None:
                parameter.grad.div_(factor)

    def finish(self) -> None:
        """Wait until all that was sent has been taken.

        Sends only begin in the middle of a batch: a neighbour may be about to send, too, and would
        receive nothing before that is done.
        """
        while self._going:
            self._going.popleft().wait()

    def _send(self, tensor: Any, step: int) -> None:
        """Begin to send something to the stage before (-1) or behind (1)."""
        other, tag = self._neighbour(step), self._tag(self.stage_index + step, step)
        if other == self.group_rank:
            _own_mail(self.group).setdefault(tag, deque()).append(tensor)
            return
        work = messages.isend(tensor, group=self.group, group_dst=other, tag=tag)
        if work is not None:
            self._going.append(work)
        while self._going and self._going[0].is_completed():
            self._going.popleft().wait()

    def _take(self, into: Any, step: int) -> Any:
        """Receive something that goes that way (`step`) from the stage that it comes from."""
        other, tag = self._neighbour(-step), self._tag(self.stage_index, step)
        if other == self.group_rank:
            return _own_mail(self.group)[tag].popleft()
        messages.recv(into, group=self.group, group_src=other, tag=tag)
        return into

    def _neighbour(self, step: int) -> int:
        return (self.stage_index + step) % self.group_size

    @staticmethod
    def _tag(stage: int, step: int) -> int:
        """What tells messages for the stages of one process apart, and those back from those on."""
        return 2 * stage + (step < 0)

    def _tell(self, outputs: tuple[Any, ...]) -> None:
        told = objects._pickled([(tuple(each.shape), each.dtype) for each in outputs])
        self._send(wrap(np.array([told.size], np.int64)), 1)
        self._send(wrap(told), 1)
        for each in outputs:
            self._send(each.detach().contiguous(), 1)

    def _receive(self, trains: bool) -> tuple[Any, ...]:
        size = self._take(wrap(np.zeros(1, np.int64)), 1)
        told = self._take(wrap(np.zeros(int(size.item()), np.uint8)), 1)
        received = []
        for shape, dtype in objects._unpickled(told._data):
            tensor: Any = self._take(ops.empty(shape, dtype=dtype), 1)
            received.append(tensor.requires_grad_() if trains and _has_grad(tensor) else tensor)
        return tuple(received)

    def _receive_like(self, output: Any) -> Any:
        return self._take(ops.empty(tuple(output.shape), dtype=output.dtype), -1)


def _own_mail(group: Any) -> dict[int, deque[Any]]:
    """What a stage has given to another one of the same process."""
    return vars(group).setdefault("_mail_of_stages", {})  # type: ignore[no-any-return]


def _has_grad(value: Any) -> bool:
    """Whether a value has a gradient that travels back."""
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())
