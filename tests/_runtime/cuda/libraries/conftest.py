"""A fake device for the tests of this folder, and arrays in its memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from flambeau._runtime.cuda import fake
from flambeau._runtime.cuda.driver import Played, driver
from flambeau._runtime.cuda.libraries import cublaslt, cudnn, workspaces
from flambeau._runtime.cuda.libraries.matrices import Array
from flambeau._runtime.cuda.memory import running
from tests.random_seeds import generator

POISON = 0xA5


class OnDevice:
    """A host array's bytes in device memory, in strides of its own."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.low = values, 0
        span = sum((n - 1) * abs(s) for n, s in zip(values.shape, values.strides, strict=True))
        self.nbytes = span + values.itemsize if values.size else 1
        self.address = running().allocate(self.nbytes)
        running().fill(self.address, POISON, 1, self.nbytes, 0)
        if values.size:
            running().to_device(self.address, values.ctypes.data, self.nbytes, 0)

    @property
    def array(self) -> Array:
        """Shape and strides in elements."""
        steps = tuple(step // self.values.itemsize for step in self.values.strides)
        return Array(self.values.shape, steps)

    def back(self) -> np.ndarray:
        """What the device has there now."""
        memory = np.empty(self.nbytes, np.uint8)
        running().to_host(memory.ctypes.data, self.address, self.nbytes, 0)
        return np.ndarray(self.values.shape, self.values.dtype, memory.data, 0,
                          self.values.strides)  # fmt: skip


def drawn(rng: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Standard normal numbers."""
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def wide(values: np.ndarray) -> np.ndarray:
    """In double precision."""
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def close(got: np.ndarray, want: np.ndarray, tolerance: float) -> None:
    """Of the same shape, and the same as far as the largest number allows."""
    scale = max(1.0, float(np.abs(want).max(initial=0)))
    assert got.shape == want.shape
    assert float(np.abs(wide(got) - want).max(initial=0)) <= tolerance * scale


def random(*what: Any) -> np.random.Generator:
    """Other numbers in every run."""
    return np.random.default_rng(generator(*what).getrandbits(64))


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The fake driver, with libraries that are opened anew."""
    monkeypatch.setattr(Played, "on", True)
    monkeypatch.setattr(fake, "FakeDriver", _one_for_all)
    _forget()
    yield driver()
    _forget()


@cache
def _one_for_all(kind: Any = fake.FakeDriver) -> Any:
    """Each takes its share of the process's addresses."""
    return kind()


def _forget() -> None:
    driver.cache_clear()
    cublaslt.library.cache_clear()
    cudnn.library.cache_clear()
    workspaces.PIECES.clear()
