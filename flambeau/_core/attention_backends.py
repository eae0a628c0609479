"""Which implementations of attention a program permits: `sdpa_kernel`, `torch.backends.cuda`.

Attention has one implementation here, which does for PyTorch's two on the CPU, "math" and "flash".
A program that permits neither gets PyTorch's error; one that permits flash attention alone, which
PyTorch has for four dims without dropout, gets it for other inputs.
"""

from __future__ import annotations

NAMES = ("cudnn", "flash", "mem_efficient", "math", "overrideable")
NONE_PERMITTED = (
    "No viable backend for scaled_dot_product_attention was found. This is likely due to turning "
    "off both the math kernel and the fused kernels."
)
NONE_FITS = "No available kernel.  Aborting execution."


NONE_FITS_GPU = "No available kernel. Aborting execution."
HALVES = ("float16", "bfloat16")
ON_GPU = {"flash": HALVES, "cudnn": HALVES, "mem_efficient": (*HALVES, "float32")}
"""The types that PyTorch's implementations on GPUs are for."""


class Permitted:
    """What is permitted, in order of priority; `math` is looked at in every call."""

    math: bool = True
    names: tuple[str, ...] = NAMES
    priority: tuple[int, ...] = (1, 2, 0, 3, 4)


def permit(names: tuple[str, ...]) -> None:
    """Permit these implementations and no others."""
    Permitted.names = tuple(name for name in NAMES if name in names)
    Permitted.math = "math" in names


def set_permitted(name: str, enabled: bool) -> None:
    """Permit or forbid one implementation."""
    others = tuple(other for other in Permitted.names if other != name)
    permit((*others, name) if enabled else others)


def check_without_math(fits_flash: bool) -> None:
    """Raise RuntimeError unless flash attention is permitted and fits."""
    if "flash" not in Permitted.names:
        raise RuntimeError(NONE_PERMITTED)
    if not fits_flash:
        raise RuntimeError(NONE_FITS)


def check_gpu_without_math(dtype: str) -> None:
    """The same on a GPU, by the type of the operands."""
    if not set(Permitted.names) & set(ON_GPU):
        raise RuntimeError(NONE_PERMITTED)
    if not any(dtype in ON_GPU.get(name, ()) for name in Permitted.names):
        raise RuntimeError(NONE_FITS_GPU)
