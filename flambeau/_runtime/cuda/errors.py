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
}
"""Number -> its text, for a driver that has to say it itself."""


def error(code: int, text: str | None = None) -> AcceleratorError:
    """The error of a number; `error_code` is the number."""
    found = AcceleratorError(f"CUDA error: {text or TEXTS[code]}\n{ADVICE}")
    found.error_code = code
    return found
