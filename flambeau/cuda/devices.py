"""Which GPUs there are, what they can do, and which is the current one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from flambeau._core.device import INVALID_ORDINAL, AcceleratorError, Cuda
from flambeau._core.device import device as Device
from flambeau._runtime.cuda import memory
from flambeau._runtime.cuda.memory import Current, running
from flambeau.cuda.started import Started, init, unbound

ATTRIBUTES = {
    "multi_processor_count": 16, "is_integrated": 18, "warp_size": 10, "clock_rate": 13,
    "memory_clock_rate": 36, "memory_bus_width": 37, "L2_cache_size": 38,
    "max_threads_per_block": 1, "max_threads_per_multi_processor": 39,
    "regs_per_multiprocessor": 82, "shared_memory_per_block": 8,
    "shared_memory_per_block_optin": 97, "shared_memory_per_multiprocessor": 81,
    "is_multi_gpu_board": 84, "pci_bus_id": 33, "pci_device_id": 34, "pci_domain_id": 50,
    "major": 75, "minor": 76,
}  # fmt: skip
"""Properties by CUDA's numbers of a device's attributes."""
BFLOAT16 = 8
"""From this major capability on GPUs compute with bfloat16 and TF32."""


class Uuid:
    """What tells a GPU from all others."""

    def __init__(self, number: bytes) -> None:
        self.bytes = number

    def __str__(self) -> str:
        text = self.bytes.hex()
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    __repr__ = __str__


@dataclass(frozen=True)
class _CudaDeviceProperties:
    """What `get_device_properties` tells; memory in bytes, clocks in kHz."""

    name: str
    total_memory: int
    uuid: Uuid
    gcnArchName: str
    multi_processor_count: int
    is_integrated: int
    warp_size: int
    clock_rate: int
    memory_clock_rate: int
    memory_bus_width: int
    L2_cache_size: int
    max_threads_per_block: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    is_multi_gpu_board: int
    pci_bus_id: int
    pci_device_id: int
    pci_domain_id: int
    major: int
    minor: int

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, "
            f"multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, "
            f"pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, "
            f"pci_domain_id={self.pci_domain_id}, L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


def index_of(which: Any, *, optional: bool = True, allow_cpu: bool = False) -> int:
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
    if allow_cpu and wanted.type == "cpu":
        return -1
    if wanted.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {wanted}")
    if wanted.index is None and not optional:
        raise ValueError("Expected a torch.device with a specified index or an integer, but got:"
                         f"{which}")  # fmt: skip
    return Cuda.current if wanted.index is None else wanted.index


def known(which: Any) -> int:
    """The index of a device that is there. Raises AssertionError for any other."""
    init()
    index = index_of(which)
    if not 0 <= index < Cuda.devices():
        raise AssertionError("Invalid device id")
    return index


def is_available() -> bool:
    """Whether there is a CUDA device."""
    return Cuda.devices() > 0


def device_count() -> int:
    """The number of CUDA devices."""
    return Cuda.devices()


def is_initialized() -> bool:
    """Whether a CUDA device is in use."""
    return Started.on or bool(memory.allocators)


def _major() -> int:
    return get_device_capability()[0] if Cuda.devices() else 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current device computes with bfloat16, or at least takes it."""
    return _major() >= BFLOAT16 or (including_emulation and _major() > 0)


def is_tf32_supported() -> bool:
    """Whether the current device has TF32."""
    return _major() >= BFLOAT16


def get_arch_list() -> list[str]:
    """The GPU architectures that kernels are compiled for: those of the devices that are here."""
    found = {get_device_capability(index) for index in range(Cuda.devices())}
    return [f"sm_{major}{minor}" for major, minor in sorted(found)]


def get_gencode_flags() -> str:
    """The compiler's flags for those architectures."""
    numbers = [name.removeprefix("sm_") for name in get_arch_list()]
    return " ".join([f"-gencode compute=compute_{n},code=sm_{n}" for n in numbers])


def current_device() -> int:
    """The index of the current device."""
    init()
    return Cuda.current


def choose(index: int) -> None:
    """Make a device the current one."""
    Cuda.current = index
    Current.set_device(index)


def set_device(device: Any) -> None:
    """Choose the current device; a negative index chooses nothing.

    Raises:
        ValueError: it names no device.
        AcceleratorError: there is no such device.
        AttributeError: there is none at all.
    """
    index = index_of(device, optional=False)
    if index < 0:
        return
    if not Cuda.devices():
        unbound("setDevice")
    if index >= Cuda.devices():
        raise AcceleratorError(INVALID_ORDINAL)
    choose(index)


class device:
    """`with torch.cuda.device(index):` another current device; -1 or None changes nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = Cuda.current
        if self.idx == -1:
            return
        if not Cuda.devices():
            raise RuntimeError("PyTorch was compiled without CUDA support")
        set_device(self.idx)

    def __exit__(self, *exc: object) -> None:
        choose(self.prev_idx)


class device_of(device):
    """`with torch.cuda.device_of(tensor):` the current device is the tensor's, if it is a GPU."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


@cache
def _properties(index: int) -> _CudaDeviceProperties:
    driver = running(index)
    numbers = {name: driver.attribute(index, number) for name, number in ATTRIBUTES.items()}
    name = driver.device_name(index)
    return _CudaDeviceProperties(name=name, gcnArchName=name, uuid=Uuid(driver.uuid(index)),
                                 total_memory=driver.total_memory(index), **numbers)  # fmt: skip


def get_device_properties(device: Any = None) -> _CudaDeviceProperties:
    """Name, capability and memory of a device. Raises AssertionError for one that is not there."""
    return _properties(known(device))


def get_device_name(device: Any = None) -> str:
    """The name of a device."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a device."""
    found = get_device_properties(device)
    return found.major, found.minor


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether kernels of a device reach another one's memory."""
    init()
    index, peer = index_of(device), index_of(peer_device)
    if not 0 <= index < Cuda.devices():
        raise AssertionError("Invalid device id")
    if not 0 <= peer < Cuda.devices():
        raise AssertionError("Invalid peer device id")
    return running().can_access_peer(index, peer)


def synchronize(device: Any = None) -> None:
    """Wait for all streams of a device."""
    init()
    running(index_of(device)).synchronize()


def ipc_collect() -> None:
    """Give back what other processes have done with: nothing of a GPU is shared with them."""
    init()


def current_blas_handle() -> int:
    """The library handle for products: cuBLASLt has one for a process."""
    init()
    raise NotImplementedError("flambeau uses cuBLASLt, which has no handle of cuBLAS")


def current_solver_handle() -> int:
    """The library handle for linear systems. Raises NotImplementedError."""
    init()
    raise NotImplementedError("flambeau has no handle of cuSOLVER that lasts")


def cudart() -> Any:
    """The CUDA runtime as a module. Raises NotImplementedError: only the driver is used."""
    init()
    raise NotImplementedError("flambeau uses the CUDA driver (libcuda), not the runtime (cudart)")
