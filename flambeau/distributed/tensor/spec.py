"""What is known of a distributed tensor without its numbers, and which part of it is where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from flambeau._core.dtype import dtype as dtype_
from flambeau._core.layout import contiguous_strides
from flambeau.distributed.device_mesh import DeviceMesh
from flambeau.distributed.placements import Partial, Placement, Replicate, Shard

Placements = tuple[Placement, ...]
Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Spec:
    """A tensor of all processes: where it lies, and its shape, strides and type as a whole."""

    mesh: DeviceMesh
    placements: Placements
    shape: Sizes
    stride: Sizes
    dtype: dtype_

    def placed(self, placements: Sequence[Placement]) -> Spec:
        """The same tensor at other places."""
        return replace(self, placements=tuple(placements))

    def __str__(self) -> str:
        letter = "f" if self.dtype.is_floating_point else "c" if self.dtype.is_complex else "i"
        name = "b8" if str(self.dtype) == "torch.bool" else f"{letter}{self.dtype.itemsize * 8}"
        return f"Spec({name}{list(self.shape)}({''.join(map(str, self.placements))}))"


def chunk_sizes(length: int, parts: int) -> list[int]:
    """The lengths of all parts: as long as the first, and the rest, which may be nothing."""
    step = -(-length // parts)
    return [max(0, min(step, length - step * part)) for part in range(parts)]


def local_shape_and_offset(shape: Sequence[int], mesh: DeviceMesh, placements: Placements,
                           ) -> tuple[Sizes, Sizes]:  # fmt: skip
    """The shape of this process's part, and where it begins; no part is at the end."""
    coordinate = mesh.get_coordinate() or (0,) * mesh.ndim
    sizes, offsets = list(shape), [0] * len(shape)
    for dim, placement in enumerate(placements):
        if isinstance(placement, Shard):
            lengths = chunk_sizes(sizes[placement.dim], mesh.size(dim))
            offsets[placement.dim] += sum(lengths[: coordinate[dim]])
            sizes[placement.dim] = lengths[coordinate[dim]]
    ends = [n if not size else at for n, size, at in zip(shape, sizes, offsets, strict=True)]
    return tuple(sizes), tuple(ends)


def whole_shape(local: Any, mesh: DeviceMesh, placements: Placements) -> tuple[Sizes, Sizes]:
    """The shape and strides of a tensor whose parts are all as large as this one."""
    shape, stride = list(local.shape), list(local.stride())
    for dim, placement in enumerate(placements):
        if not isinstance(placement, Shard):
            continue
        step = stride[placement.dim]
        for other in range(len(stride)):
            if other != placement.dim and stride[other] >= step:
                stride[other] *= mesh.size(dim)
        shape[placement.dim] *= mesh.size(dim)
    if local.is_contiguous():
        return tuple(shape), tuple(contiguous_strides(tuple(shape)))
    return tuple(shape), tuple(stride)


def checked(placements: Sequence[Placement] | None, mesh: DeviceMesh, ndim: int) -> Placements:
    """Placements with dims counted from the front; None is Replicate everywhere.

    Raises:
        ValueError: there are not as many as dims of the mesh. IndexError: there is no such dim.
    """
    if placements is None:
        return (Replicate(),) * mesh.ndim
    if len(placements) != mesh.ndim:
        raise ValueError(
            "`placements` must have the same length as `device_mesh.ndim`! Found placements "
            f"length: {len(placements)}, and device_mesh.ndim: {mesh.ndim}."
        )
    return tuple([_from_front(placement, ndim) for placement in placements])


def _from_front(placement: Placement, ndim: int) -> Placement:
    if not isinstance(placement, Shard):
        return placement
    if not -ndim <= placement.dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], "
            f"but got {placement.dim})"
        )
    return Shard(placement.dim % ndim)


def for_gradient(placements: Sequence[Placement]) -> Placements:
    """Where a gradient lies: as its tensor, but whole where that has terms."""
    return tuple([Replicate() if isinstance(p, Partial) else p for p in placements])
