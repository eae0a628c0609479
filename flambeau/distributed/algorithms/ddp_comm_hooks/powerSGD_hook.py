"""PowerSGD: gradients as products of two thin matrices (Vogels and others, 2019, algorithm 1).

A gradient of n x m numbers is sent as n x r and r x m; what that leaves out is added to the next
gradient. Gradients that would not become smaller are sent as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributed import collectives
from flambeau.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from flambeau.distributed.data_parallel.buckets import GradBucket
from flambeau.distributed.world import the_group
from flambeau.futures import Future


class PowerSGDState:
    """What the hook keeps from one step to the next.

    Args:
        process_group: the processes; None for all.
        matrix_approximation_rank: r.
        start_powerSGD_iter: in so many steps gradients are sent as they are; at least 2, with error
            feedback or warm start.
        min_compression_rate: a matrix is sent in parts if it becomes smaller by this factor.
        use_error_feedback: whether what was left out is added to the next gradient.
        warm_start: whether a step starts with the last step's matrices.
        orthogonalization_epsilon: added to norms that are divided by.
        random_seed: of the first matrices.
        compression_stats_logging_frequency, batch_tensors_with_same_shape: without meaning here.

    Raises:
        ValueError: `start_powerSGD_iter` is too small.
    """

    def __init__(self, process_group: Any, matrix_approximation_rank: int = 1,
                 start_powerSGD_iter: int = 1000, min_compression_rate: float = 2,  # noqa: N803
                 use_error_feedback: bool = True, warm_start: bool = True,
                 orthogonalization_epsilon: float = 0, random_seed: int = 0,
                 compression_stats_logging_frequency: int = 10000,
                 batch_tensors_with_same_shape: bool = False) -> None:  # fmt: skip
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is "
                "enabled, because PowerSGD can only be applied after the first two iterations in "
                "DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = np.random.RandomState(random_seed)
        self.error_dict: dict[int, Any] = {}
        self.q_memory_dict: dict[Any, Any] = {}
        self.iter = 0

    def __getstate__(self) -> dict[str, Any]:
        """All but the processes, which are others where a program goes on."""
        kept = dict(vars(self))
        del kept["process_group"]
        return kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a state over; the processes are all there are."""
        vars(self).update(state)
        self.process_group = None

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count a step, when its last bucket is reduced."""
        if bucket.is_last():
            self.iter += 1

    def thin(self, key: Any, length: int, rank: int) -> Any:
        """The matrix that a step starts with: the last step's, or random and the same for all."""
        known = self.q_memory_dict.get(key)
        if self.warm_start and known is not None:
            return known
        return wrap(self.rng.standard_normal((length, rank)).astype(np.float32))


def _averaged(
    state: PowerSGDState, bucket: GradBucket, reduce: Callable[[PowerSGDState, GradBucket], None]
) -> Future[Tensor]:
    """The bucket's average: exact in the first steps, then by `reduce`."""
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    with no_grad():
        reduce(state, bucket)
    state.maybe_increase_iter(bucket)
    future: Future[Tensor] = Future()
    future.set_result(bucket.buffer())
    return future


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:  # noqa: N802
    """Average the gradients of a bucket, the large ones approximately."""
    return _averaged(state, bucket, _reduce)


def batched_powerSGD_hook(  # noqa: N802  its name in PyTorch
    state: PowerSGDState, bucket: GradBucket
) -> Future[Tensor]:
    """Average the gradients of a bucket approximately, as one square matrix.

    Example:
        >>> import flambeau as torch
        >>> import flambeau.distributed as dist
        >>> dist.init_process_group("fake", rank=0, world_size=2)
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
        >>> model.register_comm_hook(PowerSGDState(None), batched_powerSGD_hook)
        >>> model(torch.ones(1, 1)).sum().backward()
        >>> model.module.weight.grad.item()  # the backend sends nothing: a half of 1
        0.5
        >>> dist.destroy_process_group()
    """
    return _averaged(state, bucket, _reduce_square)


def _reduce_square(state: PowerSGDState, bucket: GradBucket) -> None:
    buffer: Any = bucket.buffer()
    count = buffer.numel()
    side = math.isqrt(count - 1) + 1
    index = bucket.index()
    padded = ops.zeros(side * side, dtype=buffer.dtype)
    padded[:count] = buffer
    if state.use_error_feedback and index in state.error_dict:
        padded.add_(state.error_dict[index])
    before = padded.clone() if state.use_error_feedback else None
    matrix = padded.view(side, side)
    size = min(state.matrix_approximation_rank, side)
    _approximate(state, index, matrix, size, the_group(state.process_group))
    if before is not None:
        state.error_dict[index] = before.sub_(padded)
    buffer.copy_(padded[:count])


def _reduce(state: PowerSGDState, bucket: GradBucket) -> None:
    buffer: Any = bucket.buffer()
    if state.use_error_feedback and bucket.index() in state.error_dict:
        buffer.add_(state.error_dict[bucket.index()])
    before = buffer.clone() if state.use_error_feedback else None
    team = the_group(state.process_group)
    for number, gradient in enumerate(bucket.gradients()):
        size = _compressed_rank(state, gradient)
        if size is None:
            _average(gradient, team)
        else:
            _approximate(state, (bucket.index(), number), gradient, size, team)
    if before is not None:
        state.error_dict[bucket.index()] = before.sub_(_own_share(state, bucket, before))


def _own_share(state: PowerSGDState, bucket: GradBucket, before: Any) -> Any:
    """What was sent of this process's gradients: all of those that were not approximated."""
    shown: Any = bucket.buffer().clone()  # type: ignore[attr-defined]
    start = 0
    for gradient in bucket.gradients():
        count = gradient.numel()
        if _compressed_rank(state, gradient) is None:
            shown[start : start + count] = before[start : start + count]
        start += count
    return shown


def _compressed_rank(state: PowerSGDState, gradient: Any) -> int | None:
    """The rank with which a gradient is approximated; None: it is sent as it is."""
    if gradient.dim() < 2:
        return None
    rows, columns = gradient.shape[0], math.prod(gradient.shape[1:])
    size = min(state.matrix_approximation_rank, rows, columns)
    is_smaller = (rows + columns) * size * state.min_compression_rate < rows * columns
    return size if is_smaller else None


def _average(tensor: Any, team: Any) -> None:
    tensor.div_(team.size())
    collectives.all_reduce(tensor, group=team)


def _approximate(state: PowerSGDState, key: Any, gradient: Any, size: int,
                 team: Any) -> None:  # fmt: skip
    """Replace a gradient by its average's product of two thin matrices."""
    matrix = gradient.reshape(gradient.shape[0], -1)
    right = _orthogonal(state.thin(key, matrix.shape[1], size), state).to(matrix.dtype)
    left: Any = matrix @ right
    _average(left, team)
    left = _orthogonal(left, state)
    right = matrix.t() @ left
    _average(right, team)
    state.q_memory_dict[key] = right.clone()
    gradient.copy_((left @ right.t()).reshape(gradient.shape))


def _orthogonal(matrix: Any, state: PowerSGDState) -> Any:
    """The columns, made orthogonal one after another, of length 1."""
    columns: list[Any] = []
    for number in range(matrix.shape[1]):
        column = matrix[:, number]
        for before in columns:
            column = column - (before * column).sum() * before
        columns.append(column / (column.norm() + state.orthogonalization_epsilon))
    return ops.stack(columns, 1)
