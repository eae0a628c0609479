"""Kernels of GPUs on the CPU: what the fake driver runs when it is asked to launch.

Blocks and threads get their turns in an order of their own for every launch: what a kernel computes
must not depend on it.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import threading
from collections.abc import Callable
from functools import cache as cache_once
from math import gcd
from typing import Any

from flambeau._compiler.gpu import fibers
from flambeau._compiler.gpu.emulated import EmulatedModule
from flambeau._runtime import engine, features, processor
from flambeau._runtime.cuda.fake import NO_RESERVE

ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
LOCK = threading.RLock()
"""Threads of blocks keep where they are in the module's own memory: one launch at a time."""
launches = itertools.count(1)


def compiled(native: Any, statics: dict[str, Any]) -> Any:
    """The CPU's form of a kernel, to be called with its 64-bit words."""

    def made() -> bytes:
        from flambeau._runtime import llvm

        llvm.binding.initialize_native_asmparser()  # fibers are switched by a few instructions
        halves = features.has("f16c") or not processor.X86
        module = EmulatedModule(llvm_version=llvm.VERSION, halves=halves)
        module.kernel(native, statics)
        return llvm.assemble(module.text(), llvm.PASSES)

    key = engine.key_of((native,), statics, "emulated")
    return ENTRY(engine.loaded(key, ("entry",), made)["entry"])


def launcher(
    native: Any, statics: dict[str, Any], pointers: tuple[bool, ...], distance: int
) -> Callable[..., None]:
    """What runs a launch of a kernel: a function of (grid, threads, shared, packed).

    Args:
        pointers: which of the kernel's arguments are addresses of device memory.
        distance: how far from there the bytes lie that the kernel is to find.
    """
    entry = compiled(native, statics)
    count = len(pointers)

    def run(grid: Any, threads: int, shared: int, packed: bytes) -> None:
        """Run all blocks. Raises RuntimeError where threads wait for what never comes."""
        blocks = grid if isinstance(grid, int) else grid[0]
        words = (ctypes.c_int64 * (fibers.HEAD + count))()
        ctypes.memmove(ctypes.addressof(words) + 8 * fibers.HEAD, packed, 8 * count)
        for place, is_pointer in enumerate(pointers, fibers.HEAD):
            if is_pointer and words[place]:
                words[place] += distance
        seed = next(launches)
        words[0], words[1] = blocks, threads
        words[2], words[3] = order(blocks, seed)
        words[4], words[5] = order(threads, seed * 7)
        words[6] = stacks()
        words[8] = distance
        with LOCK:
            entry(ctypes.addressof(words))
        if words[7]:
            raise RuntimeError(f"kernel {native.name} {statics}: the threads of a block wait for "
                               "others that have gone elsewhere")  # fmt: skip

    return run


def order(count: int, seed: int) -> tuple[int, int]:
    """The first of `count` and the step to the next: all are met once."""
    if count < 2:
        return 0, 1
    step = seed * 2654435761 % count or 1
    while gcd(step, count) != 1:
        step += 1
    return seed % count, step % count or 1


@cache_once
def _stacks() -> mmap.mmap:
    """Memory for the stacks of a block's threads, found when it is written to."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
    return mmap.mmap(-1, fibers.MOST * fibers.STACK, flags=flags)


@cache_once
def stacks() -> int:
    """Where that memory lies."""
    return ctypes.addressof(ctypes.c_char.from_buffer(_stacks()))
