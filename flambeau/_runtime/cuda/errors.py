"""What drivers report, raised as `torch.AcceleratorError`."""

from __future__ import annotations

from flambeau._core.device import ADVICE, AcceleratorError

CudaError = AcceleratorError

INVALID_VALUE = 1
OUT_OF_MEMORY = 2
INVALID_DEVICE = 101
INVALID_HANDLE = 400
NOT_READY = 600
ILLEGAL_ADDRESS = 700
PEER_ENABLED = 704
NOT_PERMITTED = 800
CAPTURE_UNSUPPORTED = 900
CAPTURE_INVALIDATED = 901
CAPTURE_UNMATCHED = 903
CAPTURE_UNJOINED = 904
CAPTURE_ISOLATION = 905

TEXTS = {
    INVALID_VALUE: "invalid argument",
    OUT_OF_MEMORY: "out of memory",
    INVALID_DEVICE: "invalid device ordinal",
    INVALID_HANDLE: "invalid resource handle",
    NOT_READY: "device not ready",
    ILLEGAL_ADDRESS: "an illegal memory access was encountered",
    PEER_ENABLED: "peer access is already enabled",
    NOT_PERMITTED: "operation not permitted",
    CAPTURE_UNSUPPORTED: "operation not permitted when stream is capturing",
    CAPTURE_INVALIDATED: "operation failed due to a previous error during capture",
    CAPTURE_UNMATCHED: "the capture was not initiated in this stream",
    CAPTURE_UNJOINED: "capturing stream has unjoined work",
    CAPTURE_ISOLATION: "dependency created on uncaptured work in another stream",
}
"""Number -> its text, for a driver that has to say it itself."""


def error(code: int, text: str | None = None) -> AcceleratorError:
    """The error of a number; `error_code` is the number."""
    found = AcceleratorError(f"CUDA error: {text or TEXTS[code]}\n{ADVICE}")
    found.error_code = code
    return found


def unpinned() -> RuntimeError:
    """The error of a copy from memory that is not pinned into a stream that is captured."""
    return RuntimeError(
        "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor "
        "is pinned. Please use tensor.pin_memory() or allocate the tensor with pin_memory=True."
    )
