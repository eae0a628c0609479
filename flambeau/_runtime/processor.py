"""Which features of the processor kernels are made for: `FLAMBEAU_CPU`.

By default all that the processor has. A level stands for a fixed set of features, so that kernels
(and the last bits of what they compute) are the same on all processors that have it: for machines
of several kinds that must agree, and to test on one machine what others will run.
"""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path
from typing import NamedTuple

NATIVE = "native"


class Level(NamedTuple):
    """A set of features, by LLVM's name of such a processor and of each that it adds."""

    cpu: str
    features: frozenset[str]
    more: str = ""  # what else LLVM is told


_V1 = frozenset("64bit cmov cx8 fxsr mmx sse sse2".split())
_V3 = _V1 | frozenset(
    "avx avx2 bmi bmi2 crc32 cx16 f16c fma lzcnt movbe popcnt sahf sse3 sse4.1 sse4.2 ssse3 "
    "xsave".split()
)
_V4 = _V3 | frozenset("avx512bw avx512cd avx512dq avx512f avx512vl".split())
_X86 = {
    "baseline": Level("x86-64", _V1),
    "avx2": Level("x86-64-v3", _V3),
    # LLVM would rather have two narrow vectors: right for some of the first of these processors.
    "avx512": Level("x86-64-v4", _V4, "-prefer-256-bit"),
    "avx512bf16": Level("x86-64-v4", _V4 | {"avx512bf16", "avx512vnni"}, "-prefer-256-bit"),
}
_ARM64 = {"baseline": Level("generic", frozenset({"neon", "fp-armv8"}))}
X86 = platform.machine().lower() in ("x86_64", "amd64")
ARM64 = platform.machine().lower() in ("aarch64", "arm64")
LEVELS: dict[str, Level] = _X86 if X86 else _ARM64 if ARM64 else {}
"""Name -> what it stands for on processors of this kind, narrow to wide."""

CHOICES = (NATIVE, *LEVELS)
CHOSEN = os.environ.get("FLAMBEAU_CPU", NATIVE)

if CHOSEN not in CHOICES:
    raise ValueError(f"FLAMBEAU_CPU is {CHOSEN!r}; it can be {', '.join(CHOICES)}")


def within(present: frozenset[str]) -> list[str]:
    """The levels that a processor with these features has, narrow to wide."""
    return [name for name, level in LEVELS.items() if level.features <= present]


def made_for(
    chosen: str, host: str, flags: str, present: frozenset[str]
) -> tuple[str, str, frozenset[str]]:
    """What LLVM is told for a choice, and all features that may be used: the processor's name and
    flags where that is its own. ValueError for a level that the processor does not have."""
    if chosen == NATIVE:
        return host, flags, present
    level = LEVELS[chosen]
    lacking = sorted(level.features - present)
    if lacking:
        usable = ", ".join([NATIVE, *within(present)])
        raise ValueError(f"FLAMBEAU_CPU is {chosen!r}, but this processor ({host}) has no "
                         f"{', '.join(lacking)}; it can be {usable}")  # fmt: skip
    flags = ",".join([f"+{name}" for name in sorted(level.features)] + level.more.split())
    return level.cpu, flags, level.features


PERMISSION, TILE_DATA = 0x1023, 18
"""Linux's request to use registers that are large (ARCH_REQ_XCOMP_PERM), and those of AMX."""
CALL = 158
"""arch_prctl's number."""


@cache
def has_tiles() -> bool:
    """Whether the system lets this process use AMX's tiles: asked once, it holds for all threads
    and for children made by fork. A thread with a small stack for signals is a reason to refuse."""
    if not X86 or platform.system() != "Linux":
        return False
    import ctypes

    return bool(ctypes.CDLL(None).syscall(CALL, PERMISSION, TILE_DATA) == 0)


CACHES = "/sys/devices/system/cpu/cpu0/cache"
"""Where Linux says what a processor's caches are."""
USUAL = {1: 32 << 10, 2: 1 << 20, 3: 8 << 20}
"""Bytes of caches where the system does not say."""


@cache
def cache_sizes() -> dict[int, int]:
    """Bytes of a core's caches for data, by level. Blocks fit them; what is computed is the same
    for any size."""
    found = dict(USUAL)
    for folder in Path(CACHES).glob("index*"):
        facts = {name: _fact(folder / name) for name in ("level", "type", "size")}
        if facts["type"] != "Instruction" and facts["size"].endswith("K"):
            found[int(facts["level"])] = int(facts["size"][:-1]) << 10
    return found


def _fact(path: Path) -> str:
    """The contents of a small file of the system's; nothing where there is none."""
    return path.read_text(encoding="ascii").strip() if path.exists() else ""
