"""`torch.distributed._composable.fsdp`: `fully_shard` under its first name."""

from flambeau.distributed.fsdp import *  # noqa: F403
