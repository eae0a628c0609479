"""Where a tensor lives: `torch.device`."""

from __future__ import annotations

import re
from typing import Any

KINDS = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga",
    "maia", "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip


class device:
    """A device kind and an optional index: `device("cuda:0")`, `device("cuda", 0)`."""

    __slots__ = ("index", "type")
    type: str
    index: int | None

    def __init__(self, type: Any = None, index: int | None = None, *, device: Any = None) -> None:
        chosen = device if type is None else type
        if isinstance(chosen, int):
            index = chosen
            chosen = "cuda"
            if index >= 0 and not Emulated.count:
                raise RuntimeError("Cannot access accelerator device when none is available.")
        if isinstance(index, int) and index < 0:
            raise RuntimeError("Device index must not be negative")
        if hasattr(chosen, "type"):
            chosen, index = chosen.type, chosen.index
        if not isinstance(chosen, str):
            raise TypeError(f"device(): argument 'type' must be str, not {_name(chosen)}")
        kind, colon, number = chosen.partition(":")
        if kind not in KINDS:
            raise _kind_error(chosen, kind)
        if colon:
            index = _parse_index(chosen, number, index)
        object.__setattr__(self, "type", kind)
        object.__setattr__(self, "index", index)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> Any:
        return (device, (str(self),))

    def __enter__(self) -> device:
        Defaults.stack.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        Defaults.stack.pop()


def _name(value: Any) -> str:
    return type(value).__name__


def _kind_error(text: str, kind: str) -> RuntimeError:
    """Torch's error for a string that begins with no device type."""
    if not text:
        return RuntimeError("Device string must not be empty")
    if not re.fullmatch(r"[A-Za-z_]+(:(0|[1-9]\d*))?", text, re.ASCII):
        return RuntimeError(f"Invalid device string: '{text}'")
    kinds = ", ".join(KINDS)
    return RuntimeError(f"Expected one of {kinds} device type at start of device string: {kind}")


def _parse_index(text: str, number: str, index: int | None) -> int:
    if not number.isdigit() or (len(number) > 1 and number[0] == "0"):
        raise RuntimeError(f"Invalid device string: '{text}'")
    if index is not None:
        raise RuntimeError(f"type (string) must not include an index because index was passed "
                           f"explicitly: {text}")  # fmt: skip
    return int(number)


CPU = device("cpu")
META = device("meta")


class Defaults:
    """The devices set by `with torch.device(...)` and `set_default_device`, innermost last."""

    stack: list[device] = [CPU]


def get_default_device() -> device:
    """The device of new tensors when none is given."""
    return Defaults.stack[-1]


def set_default_device(device_: Any) -> None:
    """Make `device_` the device of new tensors; None means the CPU."""
    Defaults.stack[0] = CPU if device_ is None else device(device_)


class Emulated:
    """The CUDA devices that are emulated: none, unless `flambeau.cuda.emulate()` was called."""

    count = 0
    current = 0
    version: str | None = None  # of CUDA
    cudnn_version: int | None = None


def _emulated(wanted: device) -> device:
    index = Emulated.current if wanted.index is None else wanted.index
    if index >= Emulated.count:
        raise AcceleratorError(INVALID_ORDINAL)
    return device("cuda", index)


class AcceleratorError(RuntimeError):
    """An error that a device reports; `torch.AcceleratorError`."""


INVALID_ORDINAL = (
    "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?\n"
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace "
    "below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
)


def check_available(chosen: Any) -> device:
    """The device asked for, or torch's error when this machine has no such device."""
    wanted = Defaults.stack[-1] if chosen is None else chosen
    if wanted is CPU:
        return CPU
    if not isinstance(wanted, device):
        wanted = device(wanted)
    if wanted.type == "cpu":
        return CPU
    if wanted.type == "cuda":
        if Emulated.count:
            return _emulated(wanted)
        raise AssertionError("Torch not compiled with CUDA enabled")
    raise NotImplementedError(f"device '{wanted}' is not implemented in flambeau 0.1")
