"""`torch.distributed.fsdp._fully_shard`: names that libraries import from there."""

from flambeau.distributed.fsdp import *  # noqa: F403
