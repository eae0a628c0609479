"""What the processor can do, in LLVM's words: the features that kernels may use."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from functools import cache as cache_once
from pathlib import Path

from flambeau._runtime import cache, choice, library, processor

INFORMATION = Path("/proc/cpuinfo")
TELLING = ("vendor_id", "cpu family", "model", "stepping", "flags", "CPU ", "Features")
"""How the lines begin that tell processors apart."""
FIRST = 1 << 13
"""Characters that are enough for one processor."""


@cache_once
def host() -> tuple[str, str, frozenset[str]]:
    """The processor's name and its features in LLVM's words, and those that it has.

    What LLVM says is kept in the cache for this kind of processor: asking it is loading it.
    """
    key = _kind()
    kept = cache.read(key) if key else None
    if kept is None:
        from flambeau._runtime import llvm

        kept = json.dumps(llvm.host()).encode()
        if key:
            cache.write(key, kept)
    name, flags, present = json.loads(kept)
    return name, flags, frozenset(present)


def _kind() -> str:
    """The name in the cache of what LLVM says of this processor; nothing where the system does not
    tell one kind from another."""
    try:
        with INFORMATION.open("rb") as file:
            text = file.read(FIRST).decode("ascii", "replace")
    except OSError:
        return ""
    lines = text.partition("\n\n")[0].splitlines()
    told = [line for line in lines if line.startswith(TELLING)]
    parts = repr(("processor", *told, *compiler_stamp()))
    return hashlib.sha256(parts.encode()).hexdigest() if told else ""


@cache_once
def compiler_stamp() -> tuple[tuple[str, int, int], ...]:
    """Which LLVM there is, without loading it: size and time of llvmlite's files that say so."""
    found = importlib.util.find_spec("llvmlite")
    if found is None or found.origin is None:
        return ()
    folder = Path(found.origin).parent
    files = (*folder.glob("*.py"), *folder.glob("binding/*llvmlite*"))
    statuses = [(path.name, path.stat()) for path in sorted(files)]
    return tuple((name, status.st_size, status.st_mtime_ns) for name, status in statuses)


@cache_once
def made_for() -> tuple[str, str, frozenset[str]]:
    """The same of the processor that kernels are made for: this one, what FLAMBEAU_CPU asks, or the
    library's, where all kernels are from there."""
    if choice.FROM_LIBRARY:
        opened = library.opened()
        if opened is not None:
            return opened.made_for[:3]
    return processor.made_for(processor.CHOSEN, *host())


@cache_once
def has(feature: str) -> bool:
    """Whether kernels may use a feature: "avx512f", "avx512bf16", "neon", "f16c" ..."""
    return feature in made_for()[2]


@cache_once
def vector_bits() -> int:
    """The width of a vector register: 512 with AVX-512, 256 with AVX, else 128."""
    return 512 if has("avx512f") else 256 if has("avx") else 128
