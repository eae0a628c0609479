"""What all stand-ins share: handles, memory of the host and of the fake device, and its streams."""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Callable, Iterable
from functools import cache, wraps
from typing import Any

import numpy as np

from flambeau._runtime.cuda.driver import driver
from flambeau._runtime.cuda.fake_queues import Access


class Refusal(Exception):
    """A status other than success that a function is to return."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def guarded(internal_error: int) -> Callable[[Callable[..., Any]], Callable[..., int]]:
    """A function that returns a status: refusals as theirs, faults of the stand-in as another."""

    def decorate(function: Callable[..., Any]) -> Callable[..., int]:
        @wraps(function)
        def call(*arguments: Any) -> int:
            try:
                function(*arguments)
            except Refusal as refusal:
                return refusal.status
            except Exception:
                traceback.print_exc()
                return internal_error
            return 0

        return call

    return decorate


class Handles:
    """Objects behind numbers, as C programs hold them."""

    def __init__(self) -> None:
        self.objects: dict[int, Any] = {}

    def give(self, target: int, held: Any) -> None:
        """Write a new object's number to where a pointer points."""
        number = 0x1000 + 16 * len(self.objects)
        self.objects[number] = held
        ctypes.c_uint64.from_address(target).value = number

    def __getitem__(self, number: int) -> Any:
        return self.objects[number]


@cache
def numpy_type(name: str) -> np.dtype[Any]:
    """A type by its name, bfloat16 among them."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def device_array(address: int, shape: tuple[int, ...], strides: tuple[int, ...],
                 dtype: np.dtype[Any]) -> Any:  # fmt: skip
    """The bytes of the fake device as an array; strides in elements, none of them negative."""
    host = getattr(driver(), "host")(address)  # noqa: B009
    size = 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    if 0 in shape:
        return np.empty(shape, dtype)
    memory: Any = (ctypes.c_byte * (size * dtype.itemsize)).from_address(host)
    steps = tuple(step * dtype.itemsize for step in strides)
    return np.ndarray(shape, dtype, memory, 0, steps)


def host_value(address: int, dtype: np.dtype[Any]) -> Any:
    """A number that the host has at an address."""
    memory: Any = (ctypes.c_byte * dtype.itemsize).from_address(address)
    return np.frombuffer(memory, dtype)[0]


def tf32(values: np.ndarray) -> np.ndarray:
    """Factors as tensor cores take them in TF32: 10 bits of the mantissa, rounded to nearest."""
    if values.dtype.kind == "c":
        return (tf32(values.real) + 1j * tf32(values.imag)).astype(values.dtype)
    bits = np.ascontiguousarray(values).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0xFFF + ((bits >> np.uint64(13)) & np.uint64(1))) & np.uint64(0xFFFFE000)
    return rounded.astype(np.uint32).view(np.float32)


def put(stream: int | None, work: Callable[[], None], reads: Iterable[int] = (),
        writes: Iterable[int] = ()) -> None:  # fmt: skip
    """Put work into a stream of the fake device; `reads` and `writes` are addresses, each said to
    reach to the end of its block."""
    fake: Any = driver()
    accesses = []
    if fake.checks is not None:
        for addresses, writing in ((reads, False), (writes, True)):
            accesses += [Access(at, fake.checks.room(at), writing) for at in addresses if at]
    fake.put(stream or 0, work, accesses)
