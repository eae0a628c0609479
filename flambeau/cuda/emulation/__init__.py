"""CUDA programs without CUDA: `cuda:0` is a heap of its own, and the CPU computes.

`start()` is what `FLAMBEAU_EMULATE_CUDA=1` and `flambeau.cuda.emulate()` do. Nothing of it is
looked at before: it puts a watcher in front of operators (`places`), gives Tensor methods that know
devices, and fills `torch.cuda` with functions that answer for an emulated GPU.

What is emulated is where tensors are, what may meet, what is refused, which precision autocast
chooses, and how much memory is in use; not how a GPU's kernels round, nor their speed.
"""

from __future__ import annotations

from flambeau._core import modes
from flambeau._core.device import Emulated
from flambeau._runtime import device_memory

DEVICES, CUDA, CUDNN = 1, "13.0", 91900


def start() -> None:
    """Emulate CUDA from now on; it stays on. Call it before tensors are made.

    Raises:
        RuntimeError: this system has no memory pool, of which the emulated memory is made.
    """
    if modes.watch.places is not None:
        return
    try:
        for index in range(DEVICES):
            device_memory.add(f"cuda:{index}")
    except (ImportError, OSError, MemoryError) as error:
        raise RuntimeError(f"CUDA cannot be emulated: there is no memory pool ({error}); it needs "
                           "Linux and llvmlite") from error  # fmt: skip
    Emulated.count, Emulated.version, Emulated.cudnn_version = DEVICES, CUDA, CUDNN
    import flambeau._ops.table.autocast  # noqa: F401  (precision is chosen before the place)
    from flambeau import cuda
    from flambeau.cuda.emulation import generators, hooks, namespace
    from flambeau.cuda.emulation.places import Places

    places = Places()
    places.accelerator = namespace.ACCELERATOR
    modes.watch.places = places
    modes.watch.active += 1
    modes.watch.nodes += 1
    generators.start()
    hooks.install(places)
    namespace.fill(vars(cuda))
