"""`torch.distributed._tensor.api`."""

from flambeau.distributed.tensor import DTensor, distribute_module, distribute_tensor

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]
