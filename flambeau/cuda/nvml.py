"""What only NVIDIA's management library tells: clocks, temperature, power, processes.

flambeau asks the driver alone, which does not know these; PyTorch asks the package nvidia-ml-py.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from flambeau.cuda.devices import known

INSTALL = (
    "nvidia-ml-py does not seem to be installed or it can't be imported.\n"
    "`pip install nvidia-ml-py` installs it."
)
MIB = 1 << 20


def _library(device: Any) -> tuple[Any, Any]:
    """The library, and its handle of a device.

    Raises:
        ModuleNotFoundError: `pip install nvidia-ml-py` installs it.
    """
    if importlib.util.find_spec("pynvml") is None:
        raise ModuleNotFoundError(INSTALL)
    library: Any = importlib.import_module("pynvml")
    library.nvmlInit()
    return library, library.nvmlDeviceGetHandleByIndex(known(device))


def utilization(device: Any = None) -> int:
    """The percentage of time in which a kernel ran, of late."""
    library, handle = _library(device)
    return int(library.nvmlDeviceGetUtilizationRates(handle).gpu)


def memory_usage(device: Any = None) -> int:
    """The percentage of time in which memory was read or written, of late."""
    library, handle = _library(device)
    return int(library.nvmlDeviceGetUtilizationRates(handle).memory)


def device_memory_used(device: Any = None) -> int:
    """Bytes of a device's memory that all processes use."""
    library, handle = _library(device)
    return int(library.nvmlDeviceGetMemoryInfo(handle).used)


def temperature(device: Any = None) -> int:
    """Degrees Celsius of a device."""
    library, handle = _library(device)
    return int(library.nvmlDeviceGetTemperature(handle, 0))


def power_draw(device: Any = None) -> int:
    """Milliwatts that a device takes."""
    library, handle = _library(device)
    return int(library.nvmlDeviceGetPowerUsage(handle))


def clock_rate(device: Any = None) -> int:
    """MHz of a device's multiprocessors."""
    library, handle = _library(device)
    return int(library.nvmlDeviceGetClockInfo(handle, 1))


def list_gpu_processes(device: Any = None) -> str:
    """The processes that use a device, and their memory, for people."""
    if importlib.util.find_spec("pynvml") is None:
        return "pynvml module not found, please install nvidia-ml-py"
    library, handle = _library(device)
    lines = [f"GPU:{known(device)}"]
    for process in library.nvmlDeviceGetComputeRunningProcesses(handle):
        used = process.usedGpuMemory / MIB
        lines.append(f"process {process.pid:>10d} uses {used:>12.3f} MB GPU memory")
    return "\n".join(lines if len(lines) > 1 else [*lines, "no processes are running"])
