"""`torch.utils.data._utils.worker`: what a worker knows about itself."""

from flambeau.utils.data.seeds import generate_state as _generate_state
from flambeau.utils.data.worker_info import WorkerInfo, get_worker_info

__all__ = ["_generate_state", "WorkerInfo", "get_worker_info"]
