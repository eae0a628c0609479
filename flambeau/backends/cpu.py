"""`torch.backends.cpu`."""

import functools


@functools.cache
def get_cpu_capability() -> str:
    """The widest vectors that kernels are compiled for: "AVX512", "AVX2", or "DEFAULT".

    `FLAMBEAU_CPU` chooses narrower ones; without llvmlite there are none.
    """
    try:
        from flambeau._runtime import features
    except ImportError:
        return "DEFAULT"
    if features.has("avx512f"):
        return "AVX512"
    return "AVX2" if features.has("avx2") else "DEFAULT"
