"""`torch.distributed.tensor.placement_types`: where tensors lie."""

from flambeau._core.absent import absent_class
from flambeau.distributed.placements import NormPartial as _NormPartial
from flambeau.distributed.placements import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard", "_NormPartial", "_StridedShard"]

_StridedShard = absent_class("torch.distributed.tensor.placement_types._StridedShard")
"""Parts that lie interleaved, which libraries name: there are none."""
