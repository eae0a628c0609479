"""`torch.distributed.tensor.placement_types`: where tensors lie."""

from flambeau.distributed.placements import NormPartial as _NormPartial
from flambeau.distributed.placements import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard", "_NormPartial"]
