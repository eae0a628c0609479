"""What a DistributedDataParallel says of itself, which libraries ask for."""

from __future__ import annotations

import os
from typing import Any

from flambeau.nn.layers.batchnorm import SyncBatchNorm

NOT_SET = "N/A"
VARIABLES = {
    "cuda_visible_devices": "CUDA_VISIBLE_DEVICES", "gloo_socket_ifname": "GLOO_SOCKET_IFNAME",
    "master_addr": "MASTER_ADDR", "master_port": "MASTER_PORT",
    "torch_distributed_debug": "TORCH_DISTRIBUTED_DEBUG",
}  # fmt: skip
"""What is said of the environment."""
SHORT = {
    "float32": "float",
    "float64": "double",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
}
"""The names that PyTorch writes for some types."""


def facts_of(parallel: Any) -> dict[str, Any]:
    """Settings, sizes and the place of a process, under PyTorch's names; no times."""
    parameters = parallel._parameters_of_model
    group = parallel.process_group
    has_sync = any(isinstance(each, SyncBatchNorm) for each in parallel.module.modules())
    kinds = dict.fromkeys(parameter.dtype.name for parameter in parameters)
    return {
        "backend_name": group.name(),
        "bucket_sizes": ", ".join(map(str, parallel.reducer.bucket_bytes())),
        "bucket_cap_bytes": parallel.bucket_bytes_cap,
        "device_ids": "",
        "output_device": -1,
        "dtypes": ", ".join(SHORT.get(kind, kind) for kind in kinds),
        "module_name": type(parallel.module).__name__,
        "broadcast_buffers": int(parallel.broadcast_buffers),
        "find_unused_parameters": int(parallel.find_unused_parameters),
        "gradient_as_bucket_view": int(parallel.gradient_as_bucket_view),
        "has_sync_bn": int(has_sync),
        "is_multi_device_module": 0,
        "num_parameter_tensors": len(parameters),
        "total_parameter_size_bytes": sum(parameter.nbytes for parameter in parameters),
        "rank": group.rank(),
        "world_size": group.size(),
        **({"static_graph": 1} if parallel.static_graph else {}),
        **{name: os.environ.get(key, NOT_SET) for name, key in VARIABLES.items()},
    }
