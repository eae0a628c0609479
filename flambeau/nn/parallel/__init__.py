"""Modules on several devices, and in several processes.

Flambeau computes on the CPU, where DataParallel is a pass-through.

The functions behave as PyTorch's do on a machine without GPUs.
"""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import missing
from flambeau.nn.parallel.data_parallel import DataParallel, data_parallel
from flambeau.nn.parallel.parallel_apply import parallel_apply
from flambeau.nn.parallel.replicate import replicate
from flambeau.nn.parallel.scatter_gather import gather, scatter

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]


def __getattr__(name: str) -> Any:
    if name == "DistributedDataParallel":  # importing it imports sockets and threads
        from flambeau.nn.parallel.distributed import DistributedDataParallel

        return DistributedDataParallel
    return missing(__name__, name)
