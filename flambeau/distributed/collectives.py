"""Collectives on tensors.

Every process of the group calls the same function. With `async_op=True` it returns a Work at once;
outputs are right, and inputs may be written again, after `work.wait()`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._tensor.tensor import Tensor
from flambeau.distributed import patterns
from flambeau.distributed.group import ProcessGroup
from flambeau.distributed.reduce_op import RedOpType
from flambeau.distributed.reductions import check as check_reduction
from flambeau.distributed.tensors import (
    Target,
    as_bytes,
    check_same_type,
    check_tensor,
    check_tensors,
    elements,
    writer,
)
from flambeau.distributed.work import Work
from flambeau.distributed.world import get_group_rank, is_outside, the_group, warn_outside

SUM = RedOpType.SUM
COMPLEX = (RedOpType.SUM, RedOpType.AVG)


def _root(name: str, group: ProcessGroup, world_rank: int | None, group_rank: int | None,
          default: int | None = None) -> int:  # fmt: skip
    """The rank, within the group, that an argument names."""
    if group_rank is not None:
        if world_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        found = group_rank
    elif world_rank is None and default is None:
        raise ValueError("Must specify global_rank or group_rank")
    elif world_rank is None:
        found = default or 0
    else:
        found = get_group_rank(group, world_rank)
    if not 0 <= found < group.size():
        raise RuntimeError(f"ProcessGroupGloo::{name}: invalid root rank: {found}")
    return found


def _operation(op: Any, name: str, tensor: Tensor) -> RedOpType:
    if not isinstance(op, RedOpType):
        raise TypeError(
            f"{name}(): incompatible function arguments. The following argument types are "
            "supported: ReduceOp"
        )
    if tensor.dtype.is_complex and op not in COMPLEX and name == "reduce":
        raise RuntimeError(f"reduce does not support {op} on complex tensors")
    if tensor.dtype.is_complex and op not in COMPLEX:
        raised = RuntimeError if name.startswith("reduce_scatter") else ValueError  # as PyTorch's
        raise raised(f"all_reduce does not support {op} on complex tensors")
    check_reduction(op, tensor.dtype)
    return op


def _detail(element: dt.dtype, *more: object) -> str:
    return " ".join(map(str, (element.name, *more)))


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Nobody goes on before all have come."""
    if is_outside(group):
        return warn_outside("barrier")
    team = the_group(group)
    return team.submit(lambda: patterns.barrier(team), [], async_op)


def broadcast(tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False,
              group_src: int | None = None) -> Work | None:  # fmt: skip
    """The tensor of rank `src` to all."""
    check_tensor(tensor, "tensor")
    if is_outside(group):
        return warn_outside("broadcast")
    team = the_group(group)
    root = _root("broadcast", team, src, group_src)
    target = Target(tensor)
    detail = _detail(tensor.dtype, "from", root)

    def job() -> None:
        patterns.broadcast(team, target.bytes, root, detail)
        target.write()

    return team.submit(job, [tensor], async_op)


def all_reduce(tensor: Tensor, op: Any = SUM, group: Any = None,
               async_op: bool = False) -> Work | None:  # fmt: skip
    """The tensors of all, reduced in place, for all.

    Sums of float16 and bfloat16 are computed in float32 and rounded once.
    """
    check_tensor(tensor, "tensor")
    if is_outside(group):
        return warn_outside("all_reduce")
    team = the_group(group)
    operation = _operation(op, "all_reduce", tensor)
    target = Target(tensor)
    detail = _detail(tensor.dtype, operation.name)

    def job() -> None:
        patterns.all_reduce(team, _real_numbers(target.array), operation, detail)
        target.write()

    return team.submit(job, [tensor], async_op)


def all_reduce_coalesced(tensors: list[Tensor], op: Any = SUM, group: Any = None,
                         async_op: bool = False) -> Work | None:  # fmt: skip
    """`all_reduce` of several tensors of one type at once."""
    check_tensors(tensors, "tensors")
    check_same_type(tensors)
    if is_outside(group):
        return warn_outside("all_reduce_coalesced")
    team = the_group(group)
    operation = _operation(op, "all_reduce_coalesced", tensors[0])
    targets = [Target(tensor) for tensor in tensors]
    detail = _detail(tensors[0].dtype, operation.name)
    write = writer(targets)

    def job() -> None:
        joined = np.concatenate([target.array for target in targets])
        patterns.all_reduce(team, _real_numbers(joined), operation, detail)
        _spread(joined, targets)
        write()

    return team.submit(job, tensors, async_op)


def _real_numbers(array: np.ndarray) -> np.ndarray:
    """A vector of complex numbers as real ones. Their mean is rounded once, where that of complex
    numbers, which `reduce` gives, is multiplied by one over the count."""
    return array.view(array.real.dtype) if np.iscomplexobj(array) else array


def _spread(joined: np.ndarray, targets: Sequence[Target]) -> None:
    at = 0
    for target in targets:
        target.array[:] = joined[at : at + target.array.size]
        at += target.array.size


def reduce(tensor: Tensor, dst: int | None = None, op: Any = SUM, group: Any = None,
           async_op: bool = False, group_dst: int | None = None) -> Work | None:  # fmt: skip
    """The tensors of all, reduced in place, for rank `dst`; others keep theirs."""
    check_tensor(tensor, "tensor")
    if is_outside(group):
        return warn_outside("reduce")
    team = the_group(group)
    root = _root("reduce", team, dst, group_dst)
    operation = _operation(op, "reduce", tensor)
    target = Target(tensor)
    detail = _detail(tensor.dtype, operation.name, "to", root)

    def job() -> None:
        patterns.reduce(team, target.array, root, operation, detail)
        if team.rank() == root:
            target.write()

    return team.submit(job, [tensor], async_op)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None,
               async_op: bool = False) -> Work | None:  # fmt: skip
    """The tensors of all into the lists of all."""
    check_tensors(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    check_same_type(tensor_list, tensor)
    if is_outside(group):
        return warn_outside("all_gather")
    team = the_group(group)
    _check_outputs("allgather", team, tensor_list, tensor)
    source = as_bytes(elements(tensor))
    targets = [Target(output) for output in tensor_list]
    write = writer(targets)
    detail = _detail(tensor.dtype)

    def job() -> None:
        outputs = [target.bytes for target in targets]
        patterns.all_gather(team, source, outputs, "all_gather", detail)
        write()

    return team.submit(job, tensor_list, async_op)


def _check_outputs(name: str, group: ProcessGroup, outputs: list[Tensor], like: Tensor) -> None:
    if len(outputs) != group.size():
        raise RuntimeError(
            f"ProcessGroupGloo::{name}: invalid output tensor list at index 0 (expected length "
            f"{group.size()}, got {len(outputs)})"
        )
    for index, output in enumerate(outputs):
        if output.shape != like.shape:
            raise RuntimeError(
                f"ProcessGroupGloo::{name}: invalid tensor size at index {index} (expected "
                f"{_shown(like.shape)}, got {_shown(output.shape)})"
            )


def _shown(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))})"


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Any = None,
                           async_op: bool = False) -> Work | None:  # fmt: skip
    """The tensors of all, one after another along the first dim, or stacked, for all."""
    check_tensor(input_tensor, "input_tensor")
    check_tensor(output_tensor, "output_tensor")
    if is_outside(group):
        return warn_outside("all_gather_into_tensor")
    team = the_group(group)
    if output_tensor.numel() != team.size() * input_tensor.numel():
        length = output_tensor.numel() // team.size()
        raise RuntimeError(
            "ProcessGroupGloo::allgather: invalid tensor size at index 0 (expected "
            f"{_shown(input_tensor.shape)}, got ({length}))"
        )
    if output_tensor.dtype is not input_tensor.dtype:
        raise RuntimeError(
            "ProcessGroupGloo::allgather: invalid tensor type at index 0 (expected "
            f"{input_tensor.dtype}, got {output_tensor.dtype})"
        )
    source, target = as_bytes(elements(input_tensor)), Target(output_tensor)
    detail = _detail(input_tensor.dtype)

    def job() -> None:
        outputs = list(target.bytes.reshape(team.size(), -1)) if source.size else []
        if outputs:
            patterns.all_gather(team, source, outputs, "all_gather_into_tensor", detail)
        else:
            patterns.barrier(team, "all_gather_into_tensor")
        target.write()

    return team.submit(job, [output_tensor], async_op)


all_gather_single = all_gather_into_tensor
"""PyTorch's newer name."""


def all_gather_coalesced(output_tensor_lists: list[list[Tensor]], input_tensor_list: list[Tensor],
                         group: Any = None, async_op: bool = False) -> Work | None:  # fmt: skip
    """`all_gather` of several tensors; `output_tensor_lists[r][i]` is tensor i of rank r."""
    if is_outside(group):
        return warn_outside("all_gather_coalesced")
    team = the_group(group)
    check_tensors(input_tensor_list, "tensor_list")
    for outputs in output_tensor_lists:
        check_tensors(outputs, "output_tensor_lists")
    columns = list(zip(*output_tensor_lists, strict=True))
    sources = [as_bytes(elements(tensor)) for tensor in input_tensor_list]
    targets = [[Target(output) for output in column] for column in columns]

    def job() -> None:
        for source, column, tensor in zip(sources, targets, input_tensor_list, strict=True):
            outputs = [target.bytes for target in column]
            detail = _detail(tensor.dtype)
            patterns.all_gather(team, source, outputs, "all_gather_coalesced", detail)
            writer(column)()

    return team.submit(job, output_tensor_lists, async_op)


def gather(tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None,
           group: Any = None, async_op: bool = False,
           group_dst: int | None = None) -> Work | None:  # fmt: skip
    """The tensors of all into the list of rank `dst`, which alone has one."""
    check_tensor(tensor, "tensor")
    if gather_list:
        check_tensors(gather_list, "gather_list")
        check_same_type(tensor, gather_list)
    if is_outside(group):
        return warn_outside("gather")
    team = the_group(group)
    root = _root("gather", team, dst, group_dst, default=0)
    outputs = _list_of_root(team, root, gather_list, "gather_list")
    if outputs is not None:
        _check_outputs("gather", team, outputs, tensor)
    source = as_bytes(elements(tensor))
    targets = None if outputs is None else [Target(output) for output in outputs]
    detail = _detail(tensor.dtype, "to", root)

    def job() -> None:
        into = None if targets is None else [target.bytes for target in targets]
        patterns.gather(team, source, into, root, source.size, "gather", detail)
        writer(targets or [])()

    return team.submit(job, outputs or [], async_op)


def _list_of_root(group: ProcessGroup, root: int, given: list[Tensor] | None,
                  name: str) -> list[Tensor] | None:  # fmt: skip
    where = "destination" if name == "gather_list" else "source"
    if group.rank() == root:
        if not given:
            raise ValueError(f"Argument ``{name}`` must be specified on {where} rank.")
        return given
    if given:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{where} ranks.")
    return None


def scatter(tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None,
            group: Any = None, async_op: bool = False,
            group_src: int | None = None) -> Work | None:  # fmt: skip
    """One tensor of the list of rank `src`, which alone has one, to each."""
    check_tensor(tensor, "tensor")
    if scatter_list:
        check_tensors(scatter_list, "scatter_list")
        check_same_type(tensor, scatter_list)
    if is_outside(group):
        return warn_outside("scatter")
    team = the_group(group)
    root = _root("scatter", team, src, group_src, default=0)
    inputs = _list_of_root(team, root, scatter_list, "scatter_list")
    if inputs is not None:
        _check_outputs("scatter", team, inputs, tensor)
    sources = None if inputs is None else [as_bytes(elements(each)) for each in inputs]
    target = Target(tensor)
    detail = _detail(tensor.dtype, "from", root)

    def job() -> None:
        patterns.scatter(team, target.bytes, sources, root, detail)
        target.write()

    return team.submit(job, [tensor], async_op)


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: Any = SUM, group: Any = None,
                   async_op: bool = False) -> Work | None:  # fmt: skip
    """Element r of the lists of all, reduced, to rank r."""
    check_tensor(output, "output")
    check_tensors(input_list, "input_list")
    check_same_type(output, input_list)
    if is_outside(group):
        return warn_outside("reduce_scatter")
    team = the_group(group)
    if len(input_list) != team.size():
        raise RuntimeError("invalid input tensor list size, must be world size")
    operation = _operation(op, "reduce_scatter", output)
    _check_outputs("reduce_scatter", team, input_list, output)
    return _reduce_scatter(team, output, [elements(each) for each in input_list], operation,
                           "reduce_scatter", async_op)  # fmt: skip


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: Any = SUM, group: Any = None,
                          async_op: bool = False) -> Work | None:  # fmt: skip
    """Part r of the tensors of all, along the first dim, reduced, to rank r."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    if is_outside(group):
        return warn_outside("reduce_scatter_tensor")
    team = the_group(group)
    check_same_type(output, input)
    if output.numel() * team.size() != input.numel():
        raise RuntimeError(
            "Check failed: outputShape[0] * worldSize == inputShape[0] "
            f"({output.numel() * team.size()} vs. {input.numel()}). "
        )
    operation = _operation(op, "reduce_scatter_tensor", output)
    inputs = np.split(elements(input), team.size())
    return _reduce_scatter(team, output, inputs, operation, "reduce_scatter_tensor", async_op)


reduce_scatter_single = reduce_scatter_tensor
"""PyTorch's newer name."""


def _reduce_scatter(team: ProcessGroup, output: Tensor, inputs: list[np.ndarray],
                    operation: RedOpType, name: str, is_async: bool) -> Work | None:  # fmt: skip
    target = Target(output)
    detail = _detail(output.dtype, operation.name)

    def job() -> None:
        patterns.reduce_scatter(team, target.array, inputs, operation, name, detail)
        target.write()

    return team.submit(job, [output], is_async)


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor],
               group: Any = None, async_op: bool = False) -> Work | None:  # fmt: skip
    """Element r of each list to rank r, which has it at the place of the sender's rank."""
    check_tensors(output_tensor_list, "output_tensor_list")
    check_tensors(input_tensor_list, "input_tensor_list")
    check_same_type(output_tensor_list, input_tensor_list)
    if is_outside(group):
        return warn_outside("all_to_all")
    team = the_group(group)
    if not len(output_tensor_list) == len(input_tensor_list) == team.size():
        raise RuntimeError("Number of tensors in both lists must be the size of the group")
    targets = [Target(output) for output in output_tensor_list]
    sources = [as_bytes(elements(each)) for each in input_tensor_list]
    detail = _detail(input_tensor_list[0].dtype)

    def job() -> None:
        patterns.all_to_all(team, [target.bytes for target in targets], sources, detail)
        writer(targets)()

    return team.submit(job, output_tensor_list, async_op)


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None,
                      input_split_sizes: list[int] | None = None, group: Any = None,
                      async_op: bool = False) -> Work | None:  # fmt: skip
    """Parts of a tensor, along the first dim, to each rank, and from each."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    check_same_type(output, input)
    if is_outside(group):
        return warn_outside("all_to_all_single")
    team = the_group(group)
    target = Target(output)
    into = _parts(target.bytes, output, output_split_sizes, team)
    sources = _parts(as_bytes(elements(input)), input, input_split_sizes, team)
    detail = _detail(input.dtype)

    def job() -> None:
        patterns.all_to_all(team, into, sources, detail)
        target.write()

    return team.submit(job, [output], async_op)


def _parts(data: np.ndarray, tensor: Tensor, sizes: list[int] | None,
           group: ProcessGroup) -> list[np.ndarray]:  # fmt: skip
    """The bytes of parts of a tensor along its first dim."""
    length = tensor.shape[0] if tensor.shape else 1
    if not sizes:
        if length % group.size():
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        sizes = [length // group.size()] * group.size()
    if len(sizes) != group.size():
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != length:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    row = data.size // length if length else 0
    ends = np.cumsum([0, *sizes]) * row
    return [data[start:end] for start, end in zip(ends, ends[1:], strict=False)]


def monitored_barrier(group: Any = None, timeout: timedelta | None = None,
                      wait_all_ranks: bool = False) -> None:  # fmt: skip
    """A barrier that says in rank 0 which ranks have not come.

    Raises:
        RuntimeError: some have not; all of them are named if `wait_all_ranks`.
    """
    if is_outside(group):
        return warn_outside("monitored_barrier")
    from flambeau.distributed.monitor import monitored_barrier as run

    return run(the_group(group), timeout, wait_all_ranks)
