"""Arrays in memory of the driver, and how far two of them lie apart."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from flambeau._runtime.cuda.driver import driver
from flambeau._runtime.cuda.libraries.matrices import Array
from flambeau._runtime.cuda.memory import running

TYPES = {
    "float32": (np.float32, 3e-5), "float64": (np.float64, 1e-12), "float16": (np.float16, 4e-3),
    "bfloat16": (ml_dtypes.bfloat16, 3e-2), "complex64": (np.complex64, 3e-5),
    "complex128": (np.complex128, 1e-12),
}  # fmt: skip
POISON = 0xA5
REAL = not driver().fake  # type: ignore[union-attr]


class OnDevice:
    """A host array's bytes in device memory, in strides of its own."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        span = sum((n - 1) * s for n, s in zip(values.shape, values.strides, strict=True))
        self.nbytes = span + values.itemsize
        self.address = running().allocate(self.nbytes)
        running().to_device(self.address, values.ctypes.data, self.nbytes, 0)

    def __del__(self) -> None:
        running().free(self.address)

    @property
    def array(self) -> Array:
        steps = tuple(step // self.values.itemsize for step in self.values.strides)
        return Array(self.values.shape, steps)

    def back(self) -> np.ndarray:
        """What the device has there now."""
        memory = np.empty(self.nbytes, np.uint8)
        running().to_host(memory.ctypes.data, self.address, self.nbytes, 0)
        return np.ndarray(self.values.shape, self.values.dtype, memory.data, 0,
                          self.values.strides)  # fmt: skip


def poisoned(shape: tuple[int, ...], dtype: Any) -> OnDevice:
    """Memory for a result; what is not written to is no number."""
    made = OnDevice(np.zeros(shape, dtype))
    running().fill(made.address, POISON, 1, made.nbytes, 0)
    return made


def repeated(shape: tuple[int, ...], dtype: Any, scale: float = 1.0) -> OnDevice:
    """Random numbers, of which a million are drawn."""
    block = (np.random.default_rng(5).standard_normal(1 << 20, np.float32) * scale).astype(dtype)
    return OnDevice(np.resize(block, shape))


def wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def error(got: np.ndarray, want: np.ndarray) -> float:
    """The greatest difference over the greatest number."""
    found = float(np.abs(wide(got) - want).max(initial=0) / max(1.0, np.abs(want).max(initial=0)))
    return float("inf") if np.isnan(found) else found


def drawn(rng: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)
