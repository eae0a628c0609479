"""`torch.distributed._composable`: names that libraries import from there."""

from typing import Any

from flambeau._core.absent import absent_function
from flambeau._core.missing import lazily
from flambeau.distributed.fsdp import fully_shard

__all__ = ["checkpoint", "contract", "fully_shard", "replicate"]

checkpoint, contract, replicate = (
    absent_function(f"torch.distributed._composable.{name}")
    for name in ("checkpoint", "contract", "replicate")
)


__getattr__ = lazily(__name__)
