"""CUDA programs without a GPU: the driver is a fake one (`_runtime.cuda.fake`).

`start()` is what `FLAMBEAU_EMULATE_CUDA=1` and `flambeau.cuda.emulate()` do. Everything above the
driver is what it is on a GPU; memory is the host's, behind addresses that only the driver reads.
"""

from __future__ import annotations

from flambeau._core.device import Cuda
from flambeau._runtime.cuda.driver import play
from flambeau._tensor.device_array import look

CUDNN = 91900
"""The version of cuDNN that stands beside the fake driver."""


def start() -> None:
    """Emulate CUDA from now on; it stays on.

    Raises:
        RuntimeError: a GPU is in use.
    """
    if Cuda.count:
        return
    play()
    Cuda.look = look
    Cuda.devices()
    Cuda.cudnn_version = CUDNN
