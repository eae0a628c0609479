"""Words of kernels on GPUs: the CPU's form against NumPy, PTX for every architecture."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")  # which compiles both forms

from flambeau._compiler.gpu.ptx import Shape
from flambeau._compiler.gpu.words import WORDS
from flambeau._compiler.native import from_source
from flambeau._compiler.types import f32, f64, i32, i64
from flambeau._runtime.cuda import assemble, emulator

ARCHITECTURES = ["sm_80", "sm_90a", "sm_100", "sm_120"]
SUM = """
def block_sum(x: pointer(T), out: pointer(T), n: i64, T: static, THREADS: static):
    total = T(0)
    for i in range(thread() + block() * THREADS, n, blocks() * THREADS):
        total = total + x[i]
    for STEP in unroll(halving(32)):
        total = total + lane_across(total, STEP)
    cells = shared(T, 32)
    if thread() % 32 == 0:
        cells[thread() // 32] = total
    barrier()
    total = cells[thread() % (THREADS // 32)]
    for STEP in unroll(halving(THREADS // 32)):
        total = total + lane_across(total, STEP)
    if thread() == 0:
        out[block()] = total
"""
LANES = """
def lanes_of(x: pointer(i32), out: pointer(i32)):
    me = thread()
    out[me] = lane_below(x[me], 3)
    out[64 + me] = lane_at(x[me], me % 5)
    out[128 + me] = ballot(x[me] > 0)
    out[192 + me] = lane_across(x[me], 9)
"""
COUNT = """
def count(x: pointer(i32), bins: pointer(i32), last: pointer(i32), n: i64, counter: pointer(i32)):
    for i in range(block() * 64 + thread(), n, blocks() * 64):
        shared_add(bins + x[i], 1)
    barrier()
    if thread() == 0:
        if i64(ticket(counter)) == blocks() - 1:
            last[0] = i32(block() * 0 + 1)
"""
STUCK = """
def stuck(x: pointer(i32)):
    if thread() < 5:
        barrier()
    else:
        x[0] = lane_at(x[thread()], 0)
"""


def kernel(name: str, source: str) -> Any:
    return from_source(name, source.strip() + "\n", dict(WORDS))


def run(name: str, source: str, blocks: int, threads: int, *arguments: Any, **statics: Any) -> None:
    pointers = tuple(isinstance(value, np.ndarray) for value in arguments)
    launch = emulator.launcher(kernel(name, source), statics, pointers, 0)
    words = [v.ctypes.data if isinstance(v, np.ndarray) else v for v in arguments]
    launch((blocks, 1, 1), threads, 0, struct.pack(f"{len(words)}q", *words))


@pytest.mark.parametrize("type", [f32, f64, i32, i64])
@pytest.mark.parametrize("threads", [32, 128, 1024])
def test_a_block_adds_up_by_shuffles_and_shared_memory(type: Any, threads: int) -> None:
    dtype = np.dtype({"f32": "f4", "f64": "f8", "i32": "i4", "i64": "i8"}[type.name])
    x = (np.arange(5000) % 11).astype(dtype)
    out = np.zeros(3, dtype)
    run("block_sum", SUM, 3, threads, x, out, x.size, T=type, THREADS=threads)
    wanted = [x.reshape(-1)[b * threads :] for b in range(3)]
    each = [sum(w[k : k + threads].sum() for k in range(0, len(w), 3 * threads)) for w in wanted]
    assert out.tolist() == [float(e) for e in each]


def test_lanes_hand_each_other_numbers() -> None:
    x = np.random.default_rng(0).integers(-9, 9, 64).astype("i4")
    out = np.zeros(256, "i4")
    run("lanes_of", LANES, 1, 64, x, out)
    below, at, votes, across = out.reshape(4, 64)
    lane = np.arange(64) % 32
    warp = np.arange(64) // 32 * 32
    assert (below == x[np.where(lane >= 3, np.arange(64) - 3, np.arange(64))]).all()
    assert (at == x[warp + np.arange(64) % 5]).all()
    assert (across == x[warp + (lane ^ 9)]).all()
    bits = [(x[w : w + 32] > 0) @ (1 << np.arange(32, dtype=np.uint64)) for w in (0, 32)]
    assert votes.view("u4").tolist() == [int(bits[w // 32]) for w in warp]


def test_blocks_share_memory_by_atomics_and_the_last_one_knows() -> None:
    x = np.random.default_rng(1).integers(0, 10, 3000).astype("i4")
    bins, last, counter = (np.zeros(10, "i4") for _ in range(3))
    run("count", COUNT, 7, 64, x, bins, last, x.size, counter)
    assert bins.tolist() == np.bincount(x, minlength=10).tolist()
    assert (last[0], counter[0]) == (1, 7)


def test_threads_that_wait_for_others_in_vain_are_an_error() -> None:
    with pytest.raises(RuntimeError, match="gone elsewhere"):
        run("stuck", STUCK, 1, 32, np.zeros(32, "i4"))


def test_every_thread_and_block_has_its_turn() -> None:
    for count in (1, 2, 3, 7, 64, 1000):
        for seed in range(20):
            first, step = emulator.order(count, seed)
            assert {(first + k * step) % count for k in range(count)} == set(range(count))


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(("name", "source", "statics"), [
    ("block_sum", SUM, {"T": f64, "THREADS": 256}), ("lanes_of", LANES, {}), ("count", COUNT, {})
])  # fmt: skip
def test_ptx_for_every_architecture(name: str, source: str, statics: Any, arch: str) -> None:
    found = assemble.report(kernel(name, source), statics, Shape(threads=256), arch)
    assert found.instructions > 10
    assert found.spilled in (0, -1)
    assert found.generic == 0
