"""Kernels as builtin functions: what their machine code reads out of Python's objects."""

from __future__ import annotations

import ctypes
import gc
import struct
import threading
import time
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")  # the trampoline is code that it makes

from flambeau._runtime import choice, trampoline
from flambeau._runtime.launch import WATCHED, Kernel
from tests.random_seeds import generator

ENTRY = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
POOL = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 5)
UNLOCKED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def made(address: int, letters: str) -> trampoline.Calls:
    """The functions of a kernel at an address."""
    found = trampoline.calls(address, letters)
    assert found is not None
    return found


def words(letters: str, *arguments: Any) -> list[Any]:
    """The arguments as a kernel finds them."""
    found: list[Any] = []

    def kernel(slots: int, task: int, tasks: int) -> None:
        raw = ctypes.string_at(slots, 8 * len(letters))
        found.extend([task, tasks, *struct.unpack(letters, raw)])

    entry = ENTRY(kernel)
    address = ctypes.cast(entry, ctypes.c_void_p).value or 0
    made(address, letters).direct(*arguments)
    assert found[:2] == [0, 1]
    return found[2:]


def test_arrays_and_numbers() -> None:
    x, y = np.zeros(3), np.zeros((4, 5), np.int8)[1:, 2:]
    given = ("QQQqqd", x, y, 99, -3, np.int64(7), 2.5)
    assert words(*given) == [x.ctypes.data, y.ctypes.data, 99, -3, 7, 2.5]


def test_drawn_arguments() -> None:
    draw = generator("trampoline")
    kinds = {
        "Q": lambda: (
            np.empty(draw.randrange(5)) if draw.random() < 0.5 else draw.randrange(1 << 63)
        ),
        "q": lambda: draw.choice([int, np.int64])(draw.randrange(-(1 << 62), 1 << 62)),
        "d": lambda: draw.choice([float, np.float64, int])(draw.randrange(-1000, 1000)),
    }
    for _ in range(50):
        letters = "".join(draw.choice("Qqd") for _ in range(draw.randrange(trampoline.MOST + 1)))
        values = [kinds[letter]() for letter in letters]
        wanted = [value.ctypes.data if isinstance(value, np.ndarray) else value for value in values]
        assert words(letters, *values) == wanted


def test_more_arguments_than_there_are_slots_have_no_function() -> None:
    assert trampoline.calls(1, "q" * (trampoline.MOST + 1)) is None


class Whole:
    def __int__(self) -> int:
        raise RuntimeError("no address")


@pytest.mark.parametrize(("letters", "arguments", "error"), [
    ("q", ("x",), ValueError), ("d", ("x",), TypeError), ("Q", (Whole(),), RuntimeError),
    ("qq", (1,), TypeError), ("q", (1, 2), TypeError),
])  # fmt: skip
def test_wrong_arguments_raise_and_nothing_runs(letters: str, arguments: Any,
                                                error: type[Exception]) -> None:  # fmt: skip
    with pytest.raises(error):
        made(1, letters).direct(*arguments)  # address 1: running would crash
    with pytest.raises(error):
        made(1, letters).spread(0, 0, 3, 1, *arguments)


def test_other_threads_go_on_where_they_may() -> None:
    ran = threading.Event()
    waited: list[bool] = []

    def kernel(slots: int, task: int, tasks: int) -> None:
        waited.append(ran.wait(30))

    entry = UNLOCKED(kernel)  # takes the interpreter itself, which must be free
    address = ctypes.cast(entry, ctypes.c_void_p).value or 0
    other = threading.Thread(target=lambda: (time.sleep(0.05), ran.set()))
    other.start()
    made(address, "").alone()
    other.join()
    assert waited == [True]


def test_tasks_one_after_the_other_and_by_a_pool() -> None:
    found: list[Any] = []

    def kernel(slots: int, task: int, tasks: int) -> None:
        found.append((task, tasks, ctypes.c_int64.from_address(slots).value))

    def pool(state: int, code: int, slots: int, tasks: int, limit: int) -> None:
        found.append((state, code, tasks, limit, ctypes.c_int64.from_address(slots).value))

    entry, run = UNLOCKED(kernel), POOL(pool)
    address = ctypes.cast(entry, ctypes.c_void_p).value or 0
    by_pool = ctypes.cast(run, ctypes.c_void_p).value or 0
    made(address, "q").spread(0, 0, 3, 1, -7)
    assert found == [(0, 3, -7), (1, 3, -7), (2, 3, -7)]
    found.clear()
    made(address, "q").spread(by_pool, 11, 5, 2, 9)
    assert found == [(11, address, 5, 2, 9)]
    with pytest.raises(TypeError):
        made(address, "").spread(0, 0, 3)


def test_nothing_is_left_behind() -> None:
    entry = ENTRY(lambda *given: None)
    call = made(ctypes.cast(entry, ctypes.c_void_p).value or 0, "Qqd").direct
    x, number, real = np.zeros(3), 10**15, 1.25
    for _ in range(10):
        call(x, number, real)
    import sys

    gc.collect()
    before = [sys.getrefcount(value) for value in (x, number, real)]
    for _ in range(1000):
        call(x, number, real)
    assert [sys.getrefcount(value) for value in (x, number, real)] == before


@pytest.mark.skipif(WATCHED or choice.ENGINE == "numpy", reason="small loops go another way")
def test_long_loops_let_other_threads_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is over in some microseconds keeps the interpreter to itself."""
    import flambeau as torch

    kept: list[str] = []
    once = Kernel.once
    monkeypatch.setattr(Kernel, "once", lambda self, *given: (kept.append(self.name),
                                                               once(self, *given)))  # fmt: skip
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for size, short in ((1 << 12, True), (1 << 20, False)):
            x = torch.ones(size)
            kept.clear()
            torch.addcmul(x, x, x)
            assert bool(kept) is short
    finally:
        torch.set_num_threads(threads)
