"""`torch.cuda`: GPUs, their memory, streams, events and graphs.

The driver is looked for when something first asks for a GPU. Without one, all answers as PyTorch's
build for the CPU does: questions are answered (no device, no memory in use), random seeds are
taken, and what needs a device raises torch's error. Names that are not here raise an error that
names them.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from flambeau._core.device import AcceleratorError, Cuda, OutOfMemoryError
from flambeau._core.missing import missing
from flambeau.cuda.devices import (
    _CudaDeviceProperties,
    can_device_access_peer,
    cudart,
    current_blas_handle,
    current_device,
    current_solver_handle,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    ipc_collect,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    set_device,
    synchronize,
)
from flambeau.cuda.graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from flambeau.cuda.memory import *  # noqa: F403
from flambeau.cuda.nvml import (
    clock_rate,
    device_memory_used,
    memory_usage,
    power_draw,
    temperature,
    utilization,
)
from flambeau.cuda.random import *  # noqa: F403
from flambeau.cuda.started import NOT_COMPILED, init
from flambeau.cuda.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    get_sync_debug_mode,
    set_stream,
    set_sync_debug_mode,
    stream,
)

has_half = True
has_magma = False


def emulate() -> None:
    """Emulate a CUDA device on the CPU, for tests of GPU programs; `FLAMBEAU_EMULATE_CUDA=1` too.

    Raises RuntimeError where a GPU is in use.
    """
    from flambeau.cuda.emulation import start

    start()


def _type_of_name(name: str) -> Any:
    """`torch.cuda.FloatTensor`, `torch.cuda.FloatStorage` and their like; None for other names."""
    if Cuda.devices():
        from flambeau.cuda.gpu_types import TYPES

        if name in TYPES:
            return TYPES[name]
    from flambeau.cuda.older_types import older_type

    return older_type(name)


def __getattr__(name: str) -> Any:
    if name == "default_generators":
        if not Cuda.devices():
            return ()
        from flambeau._ops.cuda import generators

        return tuple(generators.default_generators)
    if name.endswith(("Tensor", "Storage")) and not name.startswith("_"):
        found = _type_of_name(name)
        if found is not None:
            return found
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    return missing(__name__, name)
