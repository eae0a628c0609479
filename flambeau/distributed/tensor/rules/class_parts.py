"""The loss of classes where each process has some of the classes: `loss_parallel`.

Nothing as large as the scores is sent: the greatest score, the sum of exponentials and the score of
the label of each item are joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau.distributed import collectives
from flambeau.distributed.placements import Replicate, Shard
from flambeau.distributed.reduce_op import RedOpType
from flambeau.distributed.tensor.dtensor import DTensor, at
from flambeau.distributed.tensor.spec import local_shape_and_offset


class Active:
    """Whether losses are computed on parts of the classes."""

    now = False


@contextmanager
def loss_parallel() -> Iterator[None]:
    """`cross_entropy` of scores in parts along the classes, without putting them together.

    The loss and its backward have to be inside. Labels and weights are copies on all processes,
    distributed tensors or plain ones.

    >>> import flambeau as torch
    >>> from flambeau.distributed.tensor.parallel import loss_parallel
    >>> with loss_parallel():
    ...     pass  # loss = torch.nn.functional.cross_entropy(scores, labels); loss.backward()
    """
    before, Active.now = Active.now, True
    try:
        yield
    finally:
        Active.now = before


def mesh_dim_of(tensor: DTensor, dim: int) -> int:
    """The dim of the mesh along which each process has some of the classes.

    Raises:
        ValueError: there is none, or more than one.
    """
    dim %= max(tensor.ndim, 1)
    placements = tensor._spec.placements
    found = [place for place, p in enumerate(placements) if p == Shard(dim)]
    if len(found) != 1:
        raise ValueError(
            f"loss_parallel() requires exactly one mesh dim to shard tensor dimension {dim}, but "
            f"got placements {placements} with {len(found)} such mesh dim(s)."
        )
    return found[0]


def _joined(local: Any, tensor: DTensor, mesh_dim: int, operation: Any) -> Any:
    total = local.contiguous()
    collectives.all_reduce(total, operation, tensor._spec.mesh.get_group(mesh_dim))
    return total


def log_softmax(tensor: DTensor, dim: int) -> DTensor:
    """Scores less the logarithm of the sum of their exponentials over all processes."""
    mesh_dim, local = mesh_dim_of(tensor, dim), tensor._local_tensor
    greatest = _joined(local.amax(dim, keepdim=True), tensor, mesh_dim, RedOpType.MAX)
    lower = local - greatest
    total = _joined(lower.exp().sum(dim, keepdim=True), tensor, mesh_dim, RedOpType.SUM)
    return DTensor(lower - total.log(), tensor._spec)  # type: ignore[no-any-return]


def log_softmax_backward(grad: DTensor, output: DTensor, dim: int) -> DTensor:
    """Its gradient: `grad - exp(output) * sum(grad)`, the sum over all processes."""
    own = at(grad, output._spec.placements)._local_tensor
    mesh_dim = mesh_dim_of(output, dim)
    total = _joined(own.sum(dim, keepdim=True), output, mesh_dim, RedOpType.SUM)
    return DTensor(own - output._local_tensor.exp() * total, output._spec)  # type: ignore[no-any-return]


def picked(log: DTensor, target: DTensor, ignored: int) -> DTensor:
    """The score of each item's label, zero for those ignored; on all processes.

    `log` has the shape [N, C] or [C], `target` [N] or []; each is a copy but for the classes.
    """
    mesh, mesh_dim = log._spec.mesh, mesh_dim_of(log, -1)
    shape, offset = local_shape_and_offset(log._spec.shape, mesh, log._spec.placements)
    labels = at(target, (Replicate(),) * mesh.ndim)._local_tensor
    own = labels - offset[-1]
    is_here = (own >= 0) & (own < shape[-1]) & (labels != ignored)
    index = ops.where(is_here, own, 0).unsqueeze(-1)
    found = log._local_tensor.gather(-1, index).squeeze(-1) * is_here
    return DTensor(_joined(found, log, mesh_dim, RedOpType.SUM), target._spec)  # type: ignore[no-any-return]
