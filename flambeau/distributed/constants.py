"""`torch.distributed.constants`: how long operations of a group may take by default."""

from flambeau.distributed.world import DEFAULT_TIMEOUT as default_pg_timeout

__all__ = ["default_pg_timeout"]
