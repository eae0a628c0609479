"""Collectives with gradients: what goes one way forward goes the other way backward."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.function import Function
from flambeau.distributed import collectives
from flambeau.distributed.reduce_op import RedOpType
from flambeau.distributed.world import get_group_rank, the_group

SUM = RedOpType.SUM


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Any:
    """The tensor of rank `src`. Backward: the gradients of all, summed, to it."""
    return _Broadcast.apply(src, group, tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> Any:
    """The tensors of all in rank `dst`; zeros elsewhere."""
    return _Gather.apply(dst, group, tensor)


def scatter(tensors: Any, src: int = 0, group: Any = None) -> Any:
    """One of the tensors of rank `src`."""
    return _Scatter.apply(src, group, *tensors)


def reduce(tensor: Tensor, dst: int, op: Any = SUM, group: Any = None) -> Any:
    """The tensors of all, reduced, in rank `dst`."""
    return _Reduce.apply(dst, op, group, tensor)


def all_reduce(tensor: Tensor, op: Any = SUM, group: Any = None) -> Any:
    """The tensors of all, reduced. Backward: the gradients of all, reduced."""
    return _AllReduce.apply(op, group, tensor)


def all_gather(tensor: Tensor, group: Any = None) -> Any:
    """The tensors of all."""
    return _AllGather.apply(group, tensor)


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: Any = SUM,
                   group: Any = None) -> Any:  # fmt: skip
    """This rank's place in the lists of all, reduced."""
    return _ReduceScatter.apply(group, op, output, *input_list)


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor],
               group: Any = None) -> Any:  # fmt: skip
    """From each to each."""
    return _AllToAll.apply(group, output_tensor_list, *input_tensor_list)


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Any = None,
                      input_split_sizes: Any = None, group: Any = None) -> Any:  # fmt: skip
    """Parts from each to each."""
    return _AllToAllSingle.apply(group, output, output_split_sizes, input_split_sizes, input)


def _like(tensor: Any) -> Any:
    return ops.empty_like(tensor).contiguous()


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Any) -> Any:
        ctx.src, ctx.group = src, group
        result = tensor.clone()
        collectives.broadcast(result, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        total = grad.clone()
        collectives.reduce(total, ctx.src, SUM, ctx.group)
        is_root = get_group_rank(the_group(ctx.group), ctx.src) == the_group(ctx.group).rank()
        return None, None, total if is_root else ops.zeros_like(total)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        team = the_group(group)
        outputs = [ops.zeros_like(tensor) for _ in range(team.size())]
        is_root = team.rank() == get_group_rank(team, dst)
        collectives.gather(tensor.contiguous(), outputs if is_root else None, dst, group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Any) -> Any:
        ctx.src, ctx.group = src, group
        team = the_group(group)
        result = _like(tensors[0])
        is_root = team.rank() == get_group_rank(team, src)
        inputs = [each.contiguous() for each in tensors] if is_root else None
        collectives.scatter(result, inputs, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, *_Gather.apply(ctx.src, ctx.group, grad)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        result = tensor.clone()
        collectives.reduce(result, dst, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grad)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Any) -> Any:
        ctx.op, ctx.group = op, group
        result = tensor.clone()
        collectives.all_reduce(result, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Any) -> Any:
        ctx.group = group
        outputs = [_like(tensor) for _ in range(the_group(group).size())]
        collectives.all_gather(outputs, tensor.contiguous(), group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        own = _like(grads[the_group(ctx.group).rank()])
        return None, _ReduceScatter.apply(ctx.group, SUM, own, *grads)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, op: Any, output: Any, *inputs: Any) -> Any:
        ctx.group = group
        result = _like(output)
        collectives.reduce_scatter(result, [each.contiguous() for each in inputs], op, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, None, *_AllGather.apply(ctx.group, grad)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, outputs: Any, *inputs: Any) -> Any:
        ctx.group = group
        ctx.shapes = [each.shape for each in inputs]
        results = [_like(each) for each in outputs]
        collectives.all_to_all(results, [each.contiguous() for each in inputs], group)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        empty = [ops.empty(shape, dtype=grads[0].dtype) for shape in ctx.shapes]
        return None, None, *_AllToAll.apply(ctx.group, empty, *grads)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, output: Any, taken: Any, given: Any, tensor: Any) -> Any:
        ctx.group, ctx.taken, ctx.given = group, taken, given
        ctx.shape = tensor.shape
        result = _like(output)
        collectives.all_to_all_single(result, tensor.contiguous(), taken, given, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        empty = ops.empty(ctx.shape, dtype=grad.dtype)
        back = _AllToAllSingle.apply(ctx.group, empty, ctx.given, ctx.taken, grad)
        return None, None, None, None, back
