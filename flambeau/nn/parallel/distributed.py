"""`torch.nn.parallel.distributed`: the module is made where processes are, when it is asked for."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import missing

NAME = "DistributedDataParallel"


def __getattr__(name: str) -> Any:
    if name == NAME:
        from flambeau.distributed.data_parallel import DistributedDataParallel

        globals()[name] = DistributedDataParallel
        return DistributedDataParallel
    return missing(__name__, name)
