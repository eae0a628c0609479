"""`torch.distributed.tensor.device_mesh`: meshes under their older name."""

from flambeau.distributed.device_mesh import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
