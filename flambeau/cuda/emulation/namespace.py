"""What is put into `torch.cuda` when the emulation starts, and what `torch.accelerator` calls."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flambeau.cuda.emulation import devices, generators, memory, streams, types

SOURCES: tuple[ModuleType, ...] = (devices, memory, streams, generators)
PRIVATE = frozenset(
    ("check_device", "index_of", "of_place", "start", "Current", "DeviceProperties")
)


def fill(cuda: dict[str, Any]) -> None:
    """Put the emulation's functions and classes into the namespace of `torch.cuda`."""
    for module in SOURCES:
        for name, value in vars(module).items():
            made_here = getattr(value, "__module__", None) == module.__name__
            if made_here and not name.startswith("_") and name not in PRIVATE:
                cuda[name] = value
    cuda.update(types.TYPES)
    cuda["default_generators"] = tuple(generators.default_generators)


ACCELERATOR = {
    "current_device_index": devices.current_device, "current_device_idx": devices.current_device,
    "set_device_index": devices.set_device, "set_device_idx": devices.set_device,
    "synchronize": devices.synchronize, "current_stream": streams.current_stream,
    **{name: vars(memory)[name] for name in (
        "empty_cache", "memory_allocated", "max_memory_allocated", "memory_reserved",
        "max_memory_reserved")},
}  # fmt: skip
"""The functions of `torch.accelerator` by name."""
