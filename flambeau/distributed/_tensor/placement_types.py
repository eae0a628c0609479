"""`torch.distributed._tensor.placement_types`."""

from flambeau.distributed.placements import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]
