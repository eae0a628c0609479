"""One stage of a pipeline: what it gets from the stage before, and gives to the one behind."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import NotImplementedInFlambeau
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd import backward
from flambeau.distributed import messages, objects
from flambeau.distributed.world import the_group
from flambeau.nn.module import Module


class PipelineStage:
    """A part of a model that runs in this process.

    Args:
        submodule: the part. It takes what the stage before returns, a tensor or a tuple of tensors.
        stage_index: its place among the stages; the stage of rank 0 of the group is the first.
        num_stages: how many there are.
        device: where its parameters are.
        input_args, output_args, output_grads, input_grads: without meaning here; shapes travel with
            the data.
        group: the processes, as many as stages; None for all.
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
        if self.group_size != num_stages:
            raise NotImplementedInFlambeau(
                f"{num_stages} stages in a group of {self.group_size} processes: one stage each"
            )
        self.is_first, self.is_last = stage_index == 0, stage_index == num_stages - 1
        self._inputs: dict[int, tuple[Any, ...]] = {}
        self._outputs: dict[int, tuple[Any, ...]] = {}

    def forward(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any],
                trains: bool) -> Any:  # fmt: skip
        """Run one microbatch; what the module returned."""
        inputs = args if self.is_first else self._receive(trains)
        output = self.submod(*inputs, **kwargs)
        outputs = tuple(output) if isinstance(output, tuple | list) else (output,)
        if trains:
            self._inputs[number], self._outputs[number] = inputs, outputs
        if not self.is_last:
            self._send(outputs)
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
        if not self.is_first:
            for each in inputs:
                if _has_grad(each):
                    grad = each.grad if each.grad is not None else ops.zeros_like(each)
                    messages.send(grad.contiguous(), group=self.group,
                                  group_dst=self.stage_index - 1)  # fmt: skip

    def scale_grads(self, factor: int) -> None:
        """Divide the gradients of the parameters by the number of microbatches."""
        for parameter in self.submod.parameters():
            if parameter.grad is not None:
                parameter.grad.div_(factor)

    def _send(self, outputs: tuple[Any, ...]) -> None:
        told = [(tuple(each.shape), each.dtype) for each in outputs]
        behind = self.stage_index + 1
        objects.send_object_list([told], group=self.group, group_dst=behind)
        for each in outputs:
            messages.send(each.detach().contiguous(), group=self.group, group_dst=behind)

    def _receive(self, trains: bool) -> tuple[Any, ...]:
        told: list[Any] = [None]
        before = self.stage_index - 1
        objects.recv_object_list(told, group=self.group, group_src=before)
        received = []
        for shape, dtype in told[0]:
            tensor: Any = ops.empty(shape, dtype=dtype)
            messages.recv(tensor, group=self.group, group_src=before)
            received.append(tensor.requires_grad_() if trains and _has_grad(tensor) else tensor)
        return tuple(received)

    def _receive_like(self, output: Any) -> Any:
        grad: Any = ops.empty(tuple(output.shape), dtype=output.dtype)
        messages.recv(grad, group=self.group, group_src=self.stage_index + 1)
        return grad


def _has_grad(value: Any) -> bool:
    """Whether a value has a gradient that travels back."""
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())
