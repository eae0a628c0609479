"""Operators that are not the same on parts: made of others, or carried out in their own way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau.distributed import collectives
from flambeau.distributed.placements import Partial, Placement, Replicate, Shard
from flambeau.distributed.reduce_op import RedOpType
from flambeau.distributed.tensor.dtensor import DTensor, at
from flambeau.distributed.tensor.rules import class_parts
from flambeau.distributed.tensor.spec import Spec, local_shape_and_offset

MEAN, SUM = 1, 2
"""How losses are reduced."""


def whole(tensor: DTensor) -> Any:
    """All of a tensor, here."""
    return at(tensor, (Replicate(),) * tensor._spec.mesh.ndim)._local_tensor


def number(overload: Any, tensor: DTensor) -> Any:
    """`item()`."""
    return overload(whole(tensor))


def equal(overload: Any, one: DTensor, other: DTensor) -> bool:
    """Whether all elements are equal, on all processes."""
    if one.shape != other.shape:
        return False
    there = at(other, one._spec.placements)
    is_same = ops.equal(one._local_tensor, there._local_tensor)
    seen = ops.full((1,), int(is_same))
    for group in one._spec.mesh.get_all_groups():
        collectives.all_reduce(seen, RedOpType.MIN, group)
    return bool(seen.item())


def mse_loss(overload: Any, one: Any, other: Any, reduction: int = MEAN) -> Any:
    """The squares of differences, and their mean or sum."""
    squares = (one - other) ** 2
    if reduction == MEAN:
        return squares.mean()
    return squares.sum() if reduction == SUM else squares


def mse_loss_backward(overload: Any, grad: Any, one: Any, other: Any, reduction: int) -> Any:
    """Twice the differences, by how many there are where their mean was taken."""
    scale = 2.0 / one.numel() if reduction == MEAN else 2.0
    return (one - other) * scale * grad


def nll_loss(overload: Any, log: DTensor, target: Any, weight: Any, reduction: int,
             ignored: int) -> Any:  # fmt: skip
    """The loss of items that are in parts: everybody's term of it, of all weight there is."""
    mesh = log._spec.mesh
    if class_parts.Active.now:
        class_parts.mesh_dim_of(log, -1)
        return _nll_loss_of_parts(log, target, weight, reduction, ignored)
    batch = _batch_placements(log, target)
    items = [at(tensor, batch)._local_tensor for tensor in (log, target)]
    weights = None if weight is None else whole(weight)
    how = SUM if reduction == MEAN else reduction
    loss, total = overload(*items, weights, how, ignored)
    if reduction == MEAN:
        own = weights if weights is not None else ops.ones(log.shape[-1], dtype=log.dtype)
        total = _weight(items[1], own, ignored)
        for dim, placement in enumerate(batch):
            if isinstance(placement, Shard):
                collectives.all_reduce(total, RedOpType.SUM, mesh.get_group(dim))
        loss = loss / total
    kept = Shard(0) if reduction == 0 else Partial("sum")
    placed = tuple([kept if isinstance(p, Shard) else p for p in batch])
    shape = (log.shape[0],) if reduction == 0 and log.ndim > 1 else ()
    return (_over(loss, log._spec, placed, shape),
            _over(total, log._spec, (Replicate(),) * mesh.ndim, ()))  # fmt: skip


def _nll_loss_of_parts(log: DTensor, target: DTensor, weight: Any, reduction: int,
                       ignored: int) -> Any:  # fmt: skip
    """The same where each process has some of the classes."""
    labels = whole(target)
    counts = labels != ignored
    weights = counts.to(log.dtype)
    if weight is not None:
        weights = weights * whole(weight)[ops.where(counts, labels, 0)]
    losses = -class_parts.picked(log, target, ignored)._local_tensor * weights
    total = weights.sum()
    loss = losses if reduction == 0 else losses.sum()
    loss = loss / total if reduction == MEAN else loss
    everywhere = (Replicate(),) * log._spec.mesh.ndim
    return (_over(loss, log._spec, everywhere, tuple(loss.shape)),
            _over(total, log._spec, everywhere, ()))  # fmt: skip


def log_softmax(overload: Any, tensor: DTensor, dim: int, *rest: Any) -> Any:
    """On parts of the classes inside of `loss_parallel`."""
    from flambeau.distributed.tensor import operators

    if class_parts.Active.now:
        return class_parts.log_softmax(tensor, dim)
    return operators.run_by_rule(overload, (tensor, dim, *rest), {})


def log_softmax_backward(overload: Any, grad: DTensor, output: DTensor, dim: int,
                         *rest: Any) -> Any:  # fmt: skip
    """On parts of the classes inside of `loss_parallel`."""
    from flambeau.distributed.tensor import operators

    if class_parts.Active.now:
        return class_parts.log_softmax_backward(grad, output, dim)
    return operators.run_by_rule(overload, (grad, output, dim, *rest), {})


def _weight(target: Any, weights: Any, ignored: int) -> Any:
    counts = target != ignored
    looked_up = weights[ops.where(counts, target, 0)]
    return (looked_up * counts).sum()


def _batch_placements(log: DTensor, target: DTensor) -> tuple[Placement, ...]:
    """Parts along the batch where one of both has them."""
    has_batch = log.ndim > 1
    pairs = zip(log._spec.placements, target._spec.placements, strict=True)
    return tuple([Shard(0) if has_batch and Shard(0) in pair else Replicate() for pair in pairs])


def _over(local: Any, like: Spec, placements: Any, shape: Any) -> DTensor:
    stride = (1,) * len(shape)
    spec = replace(like, placements=tuple(placements), shape=shape, stride=stride,
                   dtype=local.dtype)  # fmt: skip
    return DTensor(local, spec)  # type: ignore[no-any-return]


def embedding(overload: Any, weight: Any, indices: Any, *rest: Any) -> Any:
    """Rows of a table: of one in parts, everybody gives the rows that it has, and zeros."""
    from flambeau.distributed.tensor import operators

    weight_spec = weight._spec if isinstance(weight, DTensor) else None
    rows = weight_spec.placements if weight_spec is not None else ()
    is_plain = not isinstance(indices, DTensor)
    if is_plain or Shard(0) not in rows or any(isinstance(p, Shard) for p in indices.placements):
        return operators.run_by_rule(overload, (weight, indices, *rest), {})
    return _looked_up(weight, at(indices, (Replicate(),) * len(rows)))


def _looked_up(weight: DTensor, indices: DTensor) -> DTensor:
    spec = weight._spec
    shape, offset = local_shape_and_offset(spec.shape, spec.mesh, spec.placements)
    own = indices._local_tensor - offset[0]
    is_here = (own >= 0) & (own < shape[0])
    found = weight._local_tensor.new_zeros((*indices.shape, shape[1]))
    if shape[0]:
        found = ops.embedding(weight._local_tensor, ops.where(is_here, own, 0))
    local = found * is_here.unsqueeze(-1)
    last = indices.ndim
    placed = [Partial("sum") if p == Shard(0) else Shard(last) if isinstance(p, Shard) else p
              for p in spec.placements]  # fmt: skip
    whole_shape = (*indices.shape, spec.shape[1])
    from flambeau._core.layout import contiguous_strides

    stride = tuple(contiguous_strides(whole_shape))
    return DTensor(local, Spec(spec.mesh, tuple(placed), whole_shape, stride, spec.dtype))  # type: ignore[no-any-return]


HANDLERS: dict[str, Callable[..., Any]] = {
    "_local_scalar_dense": number, "item": number, "equal": equal, "is_nonzero": number,
    "mse_loss": mse_loss, "mse_loss_backward": mse_loss_backward, "nll_loss_forward": nll_loss,
    "embedding": embedding, "_log_softmax": log_softmax,
    "_log_softmax_backward_data": log_softmax_backward,
}  # fmt: skip
