"""`torch.distributed._tensor`: the older name of `torch.distributed.tensor`."""

from flambeau.distributed.device_mesh import DeviceMesh, init_device_mesh
from flambeau.distributed.tensor import *  # noqa: F403

__all__ = ["DeviceMesh", "init_device_mesh"]
