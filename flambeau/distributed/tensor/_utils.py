"""`torch.distributed.tensor._utils`: what libraries import of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau.distributed.device_mesh import DeviceMesh
from flambeau.distributed.placements import Placement
from flambeau.distributed.tensor.spec import local_shape_and_offset


def compute_local_shape_and_global_offset(global_shape: Any, mesh: DeviceMesh,
                                          placements: Sequence[Placement]) -> Any:  # fmt: skip
    """The shape of this process's part of a tensor, and where in it the part begins."""
    return local_shape_and_offset(tuple(global_shape), mesh, tuple(placements))
