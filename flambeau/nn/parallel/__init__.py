"""Modules on several devices. Without GPUs, DataParallel is the module itself."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import missing
from flambeau.nn.module import Module


class DataParallel(Module):
    """Run a module with the batch split over the GPUs; where there are none, just run it."""

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        if device_ids:
            raise NotImplementedError("DataParallel over given devices is not implemented")
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
