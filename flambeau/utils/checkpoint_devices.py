"""The random streams of devices beside the CPU, as checkpoints save and restore them."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from flambeau._core.device import Cuda
from flambeau._tensor.tensor import Tensor


class DefaultDeviceType:
    """The type of device that is meant where no argument is on one: its random streams are saved.

    It is "cpu", whose stream is always saved, until `set_device_type` is called.
    """

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set it for the process."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The type that is set; otherwise that of the devices that are there."""
        if DefaultDeviceType._default_device_type is not None:
            return DefaultDeviceType._default_device_type
        return "cuda" if Cuda.count else "cpu"


def device_module(kind: str) -> Any:
    """`torch.cuda` for "cuda". AttributeError where there is no such module."""
    if importlib.util.find_spec(f"flambeau.{kind}") is None:
        raise AttributeError(f"module 'torch' has no attribute '{kind}'")
    return importlib.import_module(f"flambeau.{kind}")


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The indices of the devices that tensors among the arguments are on, and the states of those
    devices' random streams. The CPU is none of them."""
    found: dict[int, str] = {}
    for tensor in _tensors_in(args):
        if tensor.device.type not in ("cpu", "meta"):
            found[tensor.get_device()] = tensor.device.type
    states = [device_module(kind).get_rng_state(index) for index, kind in found.items()]
    return list(found), states


def set_device_states(
    devices: list[int], states: list[Tensor], *, device_type: str | None = None
) -> None:
    """Put back the states of the random streams of devices of one type."""
    kind = DefaultDeviceType.get_device_type() if device_type is None else device_type
    if kind == "meta":
        return
    module = device_module(kind)
    for index, state in zip(devices, states, strict=False):
        with module.device(index):
            module.set_rng_state(state)


def _tensors_in(value: Any) -> list[Any]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        return []
    return [tensor for item in value for tensor in _tensors_in(item)]
