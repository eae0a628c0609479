"""`torch.cuda` without a GPU: what PyTorch's build for the CPU answers.

Questions are answered (no device, no memory in use), random seeds are accepted, and what needs a
device raises torch's error. Names that are not here raise an error that names them.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

from flambeau._core.device import Cuda
from flambeau._core.device import device as torch_device
from flambeau._core.missing import missing
from flambeau._tensor.device_array import ready

default_generators: tuple[Any, ...] = ()
has_half = True
has_magma = False

NOT_COMPILED = "Torch not compiled with CUDA enabled"


def is_available() -> bool:
    """Whether there is a CUDA device."""
    return Cuda.devices() > 0


def device_count() -> int:
    """The number of CUDA devices."""
    return Cuda.devices()


def is_initialized() -> bool:
    """Whether a CUDA device is in use: no."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current device has bfloat16: there is none."""
    return False


def is_tf32_supported() -> bool:
    """Whether the current device has TF32: there is none."""
    return False


def get_arch_list() -> list[str]:
    """The GPU architectures that kernels are compiled for: none."""
    return []


def get_gencode_flags() -> str:
    """The compiler's flags for those architectures: none."""
    return ""


def emulate() -> None:
    """Emulate a CUDA device on the CPU, for tests of GPU programs; `FLAMBEAU_EMULATE_CUDA=1` too.

    Raises RuntimeError where the memory pool, of which the emulated memory is made, is missing.
    """
    from flambeau.cuda.emulation import start

    start()


# ---- memory


def empty_cache() -> None:
    """Give cached GPU memory back: there is none."""


def memory_allocated(device: Any = None) -> int:
    """Bytes of GPU memory in use: 0."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """The largest number of bytes of GPU memory in use so far: 0."""
    return 0


def memory_reserved(device: Any = None) -> int:
    """Bytes of GPU memory that are kept: 0."""
    return 0


def max_memory_reserved(device: Any = None) -> int:
    """The largest number of bytes of GPU memory kept so far: 0."""
    return 0


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """Statistics of GPU memory: none."""
    return OrderedDict()


def _renamed(old: str, new: str) -> None:
    text = f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`"
    warnings.warn(text, FutureWarning, stacklevel=3)


def memory_cached(device: Any = None) -> int:
    """The old name of `memory_reserved`."""
    _renamed("memory_cached", "memory_reserved")
    return 0


def max_memory_cached(device: Any = None) -> int:
    """The old name of `max_memory_reserved`."""
    _renamed("max_memory_cached", "max_memory_reserved")
    return 0


def _unbound(function: str) -> NoReturn:
    raise AttributeError(f"module 'torch._C' has no attribute '_cuda_{function}'")


def reset_peak_memory_stats(device: Any = None) -> None:
    """Start the largest numbers afresh. Raises AttributeError: there is no device."""
    _unbound("resetPeakMemoryStats")


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Start the sums afresh. Raises AttributeError: there is no device."""
    _unbound("resetAccumulatedMemoryStats")


def _resets_all(name: str) -> None:
    warnings.warn(
        f"torch.cuda.{name} now calls torch.cuda.reset_peak_memory_stats, which resets /all/ "
        "peak memory stats.",
        FutureWarning, stacklevel=3,
    )  # fmt: skip


def reset_max_memory_allocated(device: Any = None) -> None:
    """The old name of `reset_peak_memory_stats`."""
    _resets_all("reset_max_memory_allocated")
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: Any = None) -> None:
    """The old name of `reset_peak_memory_stats`."""
    _resets_all("reset_max_memory_cached")
    reset_peak_memory_stats(device)


# ---- random numbers: a seed waits for the first use of a device, which never comes


def manual_seed(seed: int) -> None:
    """Seed the current device: there is none."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seed all devices: there are none."""
    int(seed)


def seed() -> None:
    """Seed the current device by chance: there is none."""


def seed_all() -> None:
    """Seed all devices by chance: there are none."""


def get_rng_state_all() -> list[Any]:
    """The state of every device's generator: none."""
    return []


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Set the state of every device's generator: a state for a device that is not there waits."""


# ---- devices and streams


def set_device(device: Any) -> None:
    """Choose the current device; a negative index chooses nothing.

    Raises:
        ValueError: it names no device.
        AttributeError: it names a device, and none is there.
    """
    if device is None:
        raise ValueError("Expected a torch.device with a specified index or an integer, but got:"
                         "None")  # fmt: skip
    if not (isinstance(device, int) and device < 0):
        _unbound("setDevice")


def _index_of(place: Any) -> Any:
    """The number of a device that is given as such, by name, or as a device of PyTorch."""
    if isinstance(place, str):
        place = torch_device(place)
    if not isinstance(place, torch_device):
        return place
    if place.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {place}")
    return place.index


class device:
    """`with torch.cuda.device(index):`, where -1 or None means no device."""

    def __init__(self, device: Any) -> None:
        self.idx = _index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx is not None and self.idx != -1:
            raise RuntimeError("PyTorch was compiled without CUDA support")

    def __exit__(self, *exc: object) -> None:
        return


def stream(stream: Any) -> AbstractContextManager[None]:
    """`with torch.cuda.stream(None):` does nothing; streams cannot be made."""
    return nullcontext()


class Stream:
    """A queue of a GPU. Raises RuntimeError: it needs a GPU."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("torch.cuda.Stream requires CUDA support")


class Event:
    """A mark in a queue of a GPU. Raises RuntimeError: it needs a GPU."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("Tried to instantiate dummy base class Event")


NEED_A_DEVICE = (
    "current_device get_device_name get_device_properties get_device_capability synchronize "
    "mem_get_info initial_seed get_rng_state current_stream default_stream ipc_collect init "
    "can_device_access_peer set_per_process_memory_fraction get_sync_debug_mode "
    "set_sync_debug_mode current_blas_handle cudart caching_allocator_alloc"
).split()
"""Functions that PyTorch's build for the CPU has, and that raise AssertionError in it."""


def _needs_a_device(name: str) -> Callable[..., NoReturn]:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise AssertionError(NOT_COMPILED)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises AssertionError: it needs a GPU."
    return function


globals().update({name: _needs_a_device(name) for name in NEED_A_DEVICE})


def _fill() -> None:
    """Put in the functions that answer for devices."""
    from flambeau.cuda.emulation import namespace

    namespace.fill(globals())


if Cuda.count:
    _fill()
else:
    ready.append(_fill)


def __getattr__(name: str) -> Any:
    if name.endswith(("Tensor", "Storage")) and not name.startswith("_"):
        from flambeau.cuda.older_types import older_type

        found = older_type(name)
        if found is not None:
            return found
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    return missing(__name__, name)
