"""`flambeau env`: versions, processor, threads, and the optional parts that are there."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys
from pathlib import Path

from ._version import TORCH_API_VERSION, __version__

REQUIRED = ("numpy", "ml_dtypes", "llvmlite")

# What is imported, what installs it, what for.
OPTIONAL = (
    ("cupy", "flambeau[cuda]", "CUDA devices"),
    ("cudnn", "flambeau[cuda]", "convolution through cuDNN"),
    ("mpi4py", "flambeau[distributed]", "many machines"),
    ("matplotlib", "flambeau[examples]", "examples"),
    ("sklearn", "flambeau[examples]", "examples"),
    ("PIL", "flambeau[examples]", "examples"),
)

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

# The vector extensions that kernels can be made for, by architecture, narrow to wide.
VECTOR_FEATURES = (
    "neon", "asimd", "sve", "sve2", "sse4_2", "avx", "f16c", "fma", "avx2",
    "avx512f", "avx512bw", "avx512vl", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_tile",
)  # fmt: skip


def report() -> str:
    """One `name: value` line per fact; nothing heavy is imported."""
    rows = [
        ("flambeau", f"{__version__}, API of PyTorch {TORCH_API_VERSION}"),
        ("location", str(Path(__file__).parent)),
        ("Python", f"{platform.python_version()} ({sys.executable})"),
        ("platform", platform.platform()),
        ("processor", processor()),
        ("vector units", " ".join(vector_features()) or "unknown"),
        ("threads", threads()),
        ("engine", engine()),
        ("kernels for", kernels_for()),
        ("products by", products_by()),
        ("memory", memory()),
        ("kernel cache", kernel_cache()),
    ]
    rows += [(name, version(name)) for name in REQUIRED]
    rows += [(name, optional_part(name, extra, use)) for name, extra, use in OPTIONAL]
    width = max(len(name) for name, _ in rows) + 1
    return "".join(f"{name + ':':<{width}} {value}\n" for name, value in rows)


def cpuinfo() -> dict[str, str]:
    """Linux's description of the first processor; empty elsewhere."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    first = path.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    pairs = [line.partition(":") for line in first.splitlines()]
    return {name.strip(): value.strip() for name, _, value in pairs}


def processor() -> str:
    return cpuinfo().get("model name") or platform.processor() or platform.machine()


def vector_features() -> list[str]:
    """The widest last; `flags` on x86, `Features` on ARM."""
    facts = cpuinfo()
    present = set((facts.get("flags") or facts.get("Features") or "").split())
    return [name for name in VECTOR_FEATURES if name in present]


def threads() -> str:
    """Processors, how many of them work gets threads for, and what the environment asks of NumPy's
    BLAS."""
    from ._core import processors

    found = [f"{len(processors.allowed())} processors"]
    if processors.usable() < len(processors.allowed()):
        found.append(f"{processors.usable()} used")
    wishes = [f"{name}={os.environ[name]}" for name in THREAD_VARIABLES if name in os.environ]
    return ", ".join([*found, *wishes])


def engine() -> str:
    """What runs large work: compiled kernels where llvmlite is installed, unless told otherwise."""
    from ._runtime import choice

    if choice.ENGINE == "numpy":
        return "NumPy (FLAMBEAU_ENGINE=numpy)"
    if not choice.available():
        return "NumPy (llvmlite is missing)"
    wish = "" if choice.ENGINE == "auto" else f" (FLAMBEAU_ENGINE={choice.ENGINE})"
    return f"LLVM for large work, NumPy for small{wish}"


def kernels_for() -> str:
    """The features of the processor that kernels use; FLAMBEAU_CPU is looked at only if it is set:
    LLVM is not loaded otherwise."""
    from ._runtime import choice, processor

    if processor.CHOSEN == processor.NATIVE or not choice.available():
        return "all features of this processor"
    from ._runtime import features

    try:
        cpu = features.made_for()[0]
    except ValueError as error:
        return str(error)
    return f"{cpu}, {features.vector_bits()} bits (FLAMBEAU_CPU={processor.CHOSEN})"


def products_by() -> str:
    """The register tile of each type; "BLAS" where there are no kernels of products."""
    from ._runtime import choice

    if choice.ENGINE == "numpy" or not choice.available():
        return "NumPy's BLAS"
    try:
        from ._ops.products import gemm_tiles, tiles

        usable = gemm_tiles.usable()
    except ValueError as error:
        return str(error)
    if not usable:
        return "NumPy's BLAS"
    return ", ".join(f"{dtype.name} {tiles.tile_for(dtype).name}" for dtype in tiles.SHOWN)


def memory() -> str:
    """Where the memory of large tensors comes from."""
    if os.environ.get("FLAMBEAU_MEMORY", "pool") != "pool":
        return f"the system's (FLAMBEAU_MEMORY={os.environ['FLAMBEAU_MEMORY']})"
    return "pool" if sys.platform == "linux" else "the system's"


def kernel_cache() -> str:
    """The folder of compiled kernels, and how much it holds."""
    from ._runtime import cache

    folder = cache.directory()
    if folder is None:
        return "none (FLAMBEAU_CACHE_DIR is empty)"
    count, total = cache.size()
    return f"{folder}, {count} kernels, {total / 2**20:.1f} MB"


def version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def optional_part(name: str, extra: str, use: str) -> str:
    if importlib.util.find_spec(name) is not None:
        return f"found ({use})"
    return f"missing ({use}; pip install '{extra}')"
