"""The parts of a tensor from one placement to another: which collectives it takes.

Everything is done along one dim of the mesh after another. A dim of the tensor that several dims of
the mesh divide is divided by the first of them first, so that parts are put together from the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau.distributed import collectives
from flambeau.distributed.device_mesh import DeviceMesh
from flambeau.distributed.placements import NormPartial, Partial, Placement, Replicate, Shard
from flambeau.distributed.reduce_op import RedOpType
from flambeau.distributed.tensor.spec import Placements, Spec, chunk_sizes

REDUCTIONS = {"sum": RedOpType.SUM, "avg": RedOpType.AVG, "max": RedOpType.MAX,
              "min": RedOpType.MIN, "product": RedOpType.PRODUCT}  # fmt: skip


def moved(local: Any, spec: Spec, target: Placements) -> Any:
    """This process's part of a tensor, as it is at `target`.

    Raises:
        RuntimeError: parts should become terms.
    """
    now = list(spec.placements)
    for dim in reversed(range(spec.mesh.ndim)):
        if _has_to_join(now, target, dim):
            local = _from_to(local, spec, now, dim, Replicate())
    for dim, wanted in enumerate(target):
        if now[dim] != wanted:
            local = _from_to(local, spec, now, dim, wanted)
    return local


def _has_to_join(now: list[Placement], target: Placements, dim: int) -> bool:
    """Whether parts along a dim of the mesh are in the way of what changes along earlier ones, or
    cannot become other parts at once."""
    placement, wanted = now[dim], target[dim]
    if not isinstance(placement, Shard):
        return False
    earlier = [(now[other], target[other]) for other in range(dim) if now[other] != target[other]]
    if any(placement in pair for pair in earlier):
        return True
    if placement == wanted:
        return False
    rest = [*now[:dim], *now[dim + 1 :], *target[:dim], *target[dim + 1 :]]
    return not isinstance(wanted, Shard) or wanted in rest or placement in rest


def _from_to(local: Any, spec: Spec, now: list[Placement], dim: int, wanted: Placement) -> Any:
    before, now[dim] = now[dim], wanted
    step = STEPS.get((_kind(before), _kind(wanted)))
    if step is None:
        raise RuntimeError(f"redistribute from {before} to {wanted} not supported yet")
    others = [Replicate() if place == dim else p for place, p in enumerate(now)]
    sizes = list(spec.shape)
    for place, placement in enumerate(others):
        if isinstance(placement, Shard):
            lengths = chunk_sizes(sizes[placement.dim], spec.mesh.size(place))
            sizes[placement.dim] = lengths[_place(spec.mesh, place)]
    return step(local, before, wanted, Line(spec.mesh, dim, sizes))


def _kind(placement: Placement) -> type[Placement]:
    return next(kind for kind in (Shard, Replicate, Partial) if isinstance(placement, kind))


def _place(mesh: DeviceMesh, dim: int) -> int:
    coordinate = mesh.get_coordinate()
    return 0 if coordinate is None else coordinate[dim]


class Line:
    """The processes along one dim of a mesh, which together hold a tensor of some sizes."""

    def __init__(self, mesh: DeviceMesh, dim: int, sizes: list[int]) -> None:
        self.group, self.count, self.place = mesh.get_group(dim), mesh.size(dim), _place(mesh, dim)
        self.sizes = sizes

    def lengths(self, dim: int) -> list[int]:
        """The lengths of everybody's part along a dim of the tensor."""
        return chunk_sizes(self.sizes[dim], self.count)


def part(local: Any, before: Any, wanted: Any, line: Line) -> Any:
    """A whole tensor's part of this process."""
    lengths = line.lengths(wanted.dim)
    start = sum(lengths[: line.place])
    return local.narrow(wanted.dim, start, lengths[line.place]).contiguous()


def together(local: Any, before: Any, wanted: Any, line: Line) -> Any:
    """The whole of everybody's parts."""
    lengths, dim = line.lengths(before.dim), before.dim
    own = padded(local, dim, lengths[0]).contiguous()
    flat = ops.empty((line.count, *own.shape), dtype=own.dtype, device=own.device)
    collectives.all_gather_into_tensor(flat.view(-1), own.view(-1), line.group)
    pieces = [flat[place].narrow(dim, 0, length) for place, length in enumerate(lengths)]
    return ops.cat(pieces, dim)


def reduced(local: Any, before: Any, wanted: Any, line: Line) -> Any:
    """What everybody's terms make."""
    total = before.prepared(local).contiguous()
    total = total.clone() if total is local else total
    collectives.all_reduce(total, REDUCTIONS[before.reduce_op], line.group)
    return before.finished(total)


def reduced_part(local: Any, before: Any, wanted: Any, line: Line) -> Any:
    """This process's part of what everybody's terms make."""
    lengths, dim = line.lengths(wanted.dim), wanted.dim
    terms = before.prepared(local).split(lengths, dim)
    flat = ops.stack([padded(term, dim, lengths[0]) for term in terms])
    own = ops.empty(flat.shape[1:], dtype=flat.dtype, device=flat.device)
    operation = REDUCTIONS[before.reduce_op]
    collectives.reduce_scatter_tensor(own.view(-1), flat.view(-1), operation, line.group)
    return before.finished(own.narrow(dim, 0, lengths[line.place]).contiguous())


def exchanged(local: Any, before: Any, wanted: Any, line: Line) -> Any:
    """Other parts of the same tensor."""
    given = line.lengths(wanted.dim)
    taken = line.lengths(before.dim)
    sent = [piece.contiguous() for piece in local.split(given, wanted.dim)]
    shape = list(sent[line.place].shape)
    received = []
    for length in taken:
        shape[before.dim] = length
        received.append(ops.empty(tuple(shape), dtype=local.dtype, device=local.device))
    collectives.all_to_all(received, sent, line.group)
    return ops.cat(received, before.dim)


def as_term(local: Any, before: Any, wanted: Any, line: Line) -> Any:
    """A whole as everybody's term of it."""
    if isinstance(wanted, NormPartial):
        return local / line.count ** (1.0 / wanted.norm_type)
    if wanted.reduce_op != "sum":
        return local
    if local.dtype.is_floating_point or local.dtype.is_complex:
        return local / line.count
    return local if line.place == 0 else ops.zeros_like(local)


def other_term(local: Any, before: Any, wanted: Any, line: Line) -> Any:
    """Terms of one reduction as those of another: by way of the whole."""
    return as_term(reduced(local, before, wanted, line), before, wanted, line)


def padded(tensor: Any, dim: int, length: int) -> Any:
    """A tensor with zeros at the end of a dim."""
    missing = length - tensor.shape[dim]
    if not missing:
        return tensor
    shape = list(tensor.shape)
    shape[dim] = missing
    more = ops.zeros(tuple(shape), dtype=tensor.dtype, device=tensor.device)
    return ops.cat([tensor, more], dim)


STEPS: dict[tuple[type[Placement], type[Placement]], Callable[..., Any]] = {
    (Replicate, Shard): part,
    (Shard, Replicate): together,
    (Shard, Shard): exchanged,
    (Partial, Replicate): reduced,
    (Partial, Shard): reduced_part,
    (Partial, Partial): other_term,
    (Replicate, Partial): as_term,
}
