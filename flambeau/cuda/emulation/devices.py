"""Questions about emulated GPUs, and the choice of the current one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flambeau._core.device import INVALID_ORDINAL, AcceleratorError, Cuda
from flambeau._core.device import device as Device
from flambeau._runtime import device_memory

CAPABILITY = (8, 0)
"""What is emulated: a GPU with bfloat16 and TF32."""


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """What `get_device_properties` tells; `total_memory` in bytes."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int = 32
    max_threads_per_multi_processor: int = 2048
    regs_per_multiprocessor: int = 65536
    shared_memory_per_block: int = 49152
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    L2_cache_size: int = 0


def index_of(which: Any, *, optional: bool = True) -> int:
    """The index that a device, its name or an int gives; None means the current device.

    Raises:
        ValueError: it is another kind of device, or there has to be an index.
    """
    if isinstance(which, int):
        return which
    if which is None and optional:
        return Cuda.current
    wanted = Device(which) if isinstance(which, str) else which
    if not isinstance(wanted, Device):
        raise ValueError("Expected a torch.device with a specified index or an integer, but got:"
                         f"{which}")  # fmt: skip
    if wanted.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {wanted}")
    if wanted.index is None and not optional:
        raise ValueError("Expected a torch.device with a specified index or an integer, but got:"
                         f"{which}")  # fmt: skip
    return Cuda.current if wanted.index is None else wanted.index


def is_available() -> bool:
    """Whether there is a CUDA device: an emulated one."""
    return True


def device_count() -> int:
    """The number of emulated devices."""
    return Cuda.devices()


def is_initialized() -> bool:
    """Whether a CUDA device is in use: from the start."""
    return True


def init() -> None:
    """Nothing is to be done."""


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current device has bfloat16: yes."""
    return True


def is_tf32_supported() -> bool:
    """Whether the current device has TF32: yes, though nothing is rounded to it."""
    return True


def get_arch_list() -> list[str]:
    """The architectures that kernels are compiled for: that of the emulated device."""
    return ["sm_{}{}".format(*CAPABILITY)]


def current_device() -> int:
    """The index of the current device."""
    return Cuda.current


def set_device(device: Any) -> None:
    """Choose the current device; a negative index chooses nothing.

    Raises:
        ValueError: it names no device.
        AcceleratorError: there is no such device.
    """
    index = index_of(device, optional=False)
    if index >= Cuda.devices():
        raise AcceleratorError(INVALID_ORDINAL)
    if index >= 0:
        Cuda.current = index


class device:
    """`with torch.cuda.device(index):` another current device; -1 or None changes nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = Cuda.current
        set_device(self.idx)

    def __exit__(self, *exc: object) -> None:
        Cuda.current = self.prev_idx


class device_of(device):
    """`with torch.cuda.device_of(tensor):` the current device is the tensor's, if it is a GPU."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def get_device_properties(device: Any = None) -> DeviceProperties:
    """Name, capability and memory of a device. Raises AssertionError for one that is not there."""
    index = index_of(device)
    if not 0 <= index < Cuda.devices():
        raise AssertionError("Invalid device id")
    heap = device_memory.HEAPS[f"cuda:{index}"]
    return DeviceProperties("flambeau emulated GPU", *CAPABILITY, heap.limit - heap.base, 1)


def get_device_name(device: Any = None) -> str:
    """The name of a device."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a device."""
    found = get_device_properties(device)
    return found.major, found.minor


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a device reaches another one's memory: not its own."""
    get_device_properties(peer_device)
    return index_of(device) != index_of(peer_device)


def synchronize(device: Any = None) -> None:
    """Wait for a device: emulated work is done when a call returns."""
    get_device_properties(device)


def ipc_collect() -> None:
    """Nothing is shared with other processes."""
