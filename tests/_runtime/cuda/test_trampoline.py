"""Launching functions: what reaches cuLaunchKernel, played by a function of Python."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")  # the trampoline is code that it makes

from flambeau._runtime.cuda import trampoline

LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p,
)  # fmt: skip


class Array(np.ndarray):
    """An array of another class."""


def seen(letters: str, *arguments: Any) -> tuple[list[Any], Any]:
    found: list[Any] = []

    def launch(function: Any, *rest: Any) -> int:
        places = rest[8]
        kinds = {"d": ctypes.c_double}
        slots = [kinds.get(letter, ctypes.c_int64).from_address(places[k]).value
                 for k, letter in enumerate(letters)]  # fmt: skip
        found.append((function, rest[:7], rest[7], slots))
        return 7

    entry = LAUNCH(launch)
    address = ctypes.cast(entry, ctypes.c_void_p).value or 0
    told: list[int] = []
    tell = told.append
    call = trampoline.launcher(address, letters, 0x1234, 256, tell)
    call(*arguments)
    return found, told


def test_a_launch_reads_arrays_and_numbers() -> None:
    x, y = np.zeros(3), np.zeros(3).view(Array)
    found, told = seen("QQQqd", 5, 17, x, y, 99, -3, 2.5)
    assert told == [7]
    slots = [x.ctypes.data, y.ctypes.data, 99, -3, 2.5]
    assert found == [(0x1234, (17, 1, 1, 256, 1, 1, 0), 5, slots)]


def test_what_is_no_number_raises() -> None:
    with pytest.raises(TypeError):
        seen("d", 0, 1, "x")


def test_no_arguments() -> None:
    assert seen("", 0, 3)[0] == [(0x1234, (3, 1, 1, 256, 1, 1, 0), None, [])]


def test_what_the_driver_refuses_is_its_error() -> None:
    class Refusing:
        def error(self, status: int) -> Exception:
            return OSError(f"status {status}")

    entry = LAUNCH(lambda *given: 3)
    address = ctypes.cast(entry, ctypes.c_void_p).value or 0
    call = trampoline.made(Refusing(), address, "q", 0, 1)
    with pytest.raises(OSError, match="status 3"):
        call(0, 1, 2)
