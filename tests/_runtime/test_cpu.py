"""Copies of arrays that lie so that the C library's own copying is slow there."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from flambeau._runtime import cpu
from tests.random_seeds import generator

TYPES = ("bool", "int8", "float16", "float32", "int64", "float64", "complex64", "complex128")


def lying(memory: np.ndarray, start: int, count: int, kind: np.dtype) -> np.ndarray:
    return memory[start : start + count * kind.itemsize].view(kind)


@pytest.mark.parametrize("name", TYPES)
def test_values_and_bits_at_any_distance(name: str) -> None:
    draw = generator("distances of copies")
    kind = np.dtype(name)
    item = kind.itemsize
    for _ in range(40):
        count = draw.choice([0, 1, 7, 2 * cpu.SHORT // item + draw.randrange(100)])
        memory = np.frombuffer(
            draw.randbytes(4 * count * item + 4 * mmap.PAGESIZE), np.uint8
        ).copy()
        if name == "bool":
            memory &= 1
        source = lying(memory, 0, count, kind)
        behind = 2 * count * item // mmap.PAGESIZE * mmap.PAGESIZE + mmap.PAGESIZE
        target = lying(memory, behind + draw.randrange(-4, 8) * item, count, kind)
        wanted = source.tobytes()
        cpu.put(target, source)
        assert target.tobytes() == wanted


def test_rows_and_steps() -> None:
    draw = generator("copies of rows")
    for _ in range(30):
        rows, columns = draw.randrange(1, 40), draw.randrange(1, 300)
        memory = np.arange(4 * 40 * 310, dtype=np.float32)
        source = memory[: 40 * 310].reshape(40, 310)[:rows, :columns]
        target = memory[2 * 40 * 310 + 4 :][: 40 * 310].reshape(40, 310)[:rows, :columns]
        if draw.random() < 0.5:
            source, target = source[::-1], target[::-1]
        wanted = source.copy()
        cpu.put(target, source)
        np.testing.assert_array_equal(target, wanted)


def test_memory_that_overlaps_is_read_before_it_is_written() -> None:
    for step in (1, 2, 5):
        memory = np.arange(3 * cpu.SHORT, dtype=np.int32)
        wanted = memory[:-step].copy()
        cpu.put(memory[step:], memory[:-step])
        np.testing.assert_array_equal(memory[step:], wanted)


def test_one_row_to_many() -> None:
    source, target = np.arange(cpu.SHORT, dtype=np.float32), np.empty((3, cpu.SHORT), np.float32)
    cpu.put(target, source)
    assert (target == source).all()
