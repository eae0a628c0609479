"""`torch.utils.data._utils.worker`: what a worker knows about itself."""

from flambeau.utils.data.worker_info import WorkerInfo, get_worker_info

__all__ = ["WorkerInfo", "get_worker_info"]
