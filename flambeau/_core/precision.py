"""How far products of float32 may be shortened: what programs set and read back.

All of it is permission, not command. Large products of float32 on a processor with AMX take it:
under "medium" they round their operands to bfloat16, as PyTorch's do. All others are computed in
full float32, which each value permits.

The settings are a table of libraries and operators. "none" asks the row above: an operator its
library, a library the whole; convolutions and recurrent layers on a GPU are TF32 where nothing was
ever set. The older settings (`set_float32_matmul_precision`, `allow_tf32`) keep
values of their own beside the table and write into it; where table and older value contradict each
other, reading the older one is an error.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

GENERIC, CUDA, MKLDNN = "generic", "cuda", "mkldnn"
ALL = "all"
UNSET = "unset"

KNOWN = {
    GENERIC: ("ieee", "tf32", "bf16", "none"),
    CUDA: ("ieee", "tf32", "none"),
    MKLDNN: ("ieee", "tf32", "bf16", "none"),
}
"""The precisions that each library takes."""

ADVICE = (
    "See also: https://pytorch.org/docs/main/notes/cuda.html"
    "#tensorfloat-32-tf32-on-ampere-and-later-devices"
)


class Precision:
    """The table, and what the older settings were told."""

    matmul = "highest"
    cudnn_allow_tf32 = True
    wide_reductions: ClassVar[set[str]] = set()
    """Half types ("fp16", "bf16") whose products on GPUs keep all sums in float32."""
    table: ClassVar[dict[tuple[str, str], str]] = {
        (GENERIC, ALL): "none",
        (CUDA, ALL): "none", (CUDA, "matmul"): "none",
        (CUDA, "conv"): UNSET, (CUDA, "rnn"): UNSET,
        (MKLDNN, ALL): "none", (MKLDNN, "matmul"): "none",
        (MKLDNN, "conv"): "none", (MKLDNN, "rnn"): "none",
    }  # fmt: skip


FOLLOWERS: list[Callable[[], object]] = []
"""What is called after a change of the table."""


def bfloat16_will_do() -> bool:
    """Whether products of float32 on the CPU may round their operands to bfloat16."""
    return fp32_precision(MKLDNN, "matmul") == "bf16"


HELD: dict[tuple[str, str], str] = {}
"""What `fp32_precision` has found since the table last changed."""


def fp32_precision(library: str, operator: str) -> str:
    """What holds for an operator of a library: its own setting, or the next one above it."""
    held = HELD.get((library, operator))
    if held is None:
        held = HELD[library, operator] = _looked_up(library, operator)
    return held


def _looked_up(library: str, operator: str) -> str:
    own = Precision.table[library, operator]
    for found in (own, Precision.table[library, ALL], Precision.table[GENERIC, ALL]):
        if found not in ("none", UNSET):
            return found if found in KNOWN[library] else "none"
    return "tf32" if own == UNSET else "none"


def set_fp32_precision(library: str, operator: str, precision: Any) -> None:
    """Set the precision of an operator of a library, or of all."""
    if not isinstance(precision, str):
        raise TypeError(
            "_set_fp32_precision_setter(): incompatible function arguments. The following argument "
            "types are supported:\n    1. (arg0: str, arg1: str, arg2: str) -> str\n\n"
            f"Invoked with: '{library}', '{operator}', {precision!r}"
        )
    if precision not in KNOWN[GENERIC]:
        raise RuntimeError(f"Unknown precision: {precision}")
    if precision not in KNOWN[library]:
        raise RuntimeError(f"backend '{library}' does not support precision '{precision}'")
    Precision.table[library, operator] = precision
    HELD.clear()
    for follow in FOLLOWERS:
        follow()


# ---- the older settings


def _contradiction(question: str, status: str) -> RuntimeError:
    return RuntimeError(f"PyTorch is checking {question}{status} {ADVICE}")


def get_float32_matmul_precision() -> str:
    """The precision that float32 products may have, as it was set; "highest" at first.

    >>> import flambeau as torch
    >>> torch.get_float32_matmul_precision()
    'highest'
    """
    cuda = fp32_precision(CUDA, "matmul")
    mkldnn = fp32_precision(MKLDNN, "matmul")
    wanted = {"tf32": "high", "bf16": "medium"}.get(mkldnn, Precision.matmul)
    if wanted != Precision.matmul or (cuda == "tf32" and Precision.matmul == "highest"):
        raise _contradiction(
            "the matmul precision without a specific backend name,",
            "Current status indicate that you have used mix of the legacy and new APIs to set the "
            "matmul precision. We suggest only using the new API for matmul precision.",
        )
    return Precision.matmul


IN_THE_TABLE = {"highest": ("ieee", "ieee"), "high": ("tf32", "tf32"), "medium": ("tf32", "bf16")}
"""What a word writes for the products of CUDA and of oneDNN."""


def set_float32_matmul_precision(precision: str) -> None:
    """Keep how far float32 products may be shortened ("highest", "high", "medium").

    It is a permission. "medium" lets large products on a processor with AMX round their operands to
    bfloat16; all others are computed in full float32.

    >>> import flambeau as torch
    >>> torch.set_float32_matmul_precision("high")
    >>> torch.get_float32_matmul_precision()
    'high'
    >>> torch.set_float32_matmul_precision("highest")
    """
    if not isinstance(precision, str):
        raise RuntimeError(
            f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}"
        )
    if precision not in IN_THE_TABLE:
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect.",
            UserWarning, stacklevel=2,
        )  # fmt: skip
        return
    Precision.matmul = precision
    cuda, mkldnn = IN_THE_TABLE[precision]
    set_fp32_precision(CUDA, "matmul", cuda)
    set_fp32_precision(MKLDNN, "matmul", mkldnn)


# As if it were the first line of the program.
OVERRIDE = "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"
if os.environ.get(OVERRIDE, "0") == "1":
    Precision.matmul, Precision.table[CUDA, "matmul"] = "high", "tf32"
elif os.environ.get(OVERRIDE, "0") != "0":
    warnings.warn(f"Ignoring invalid value for boolean flag {OVERRIDE}: {os.environ[OVERRIDE]}"
                  "valid values are 0 or 1.", UserWarning, stacklevel=2)  # fmt: skip


def cublas_allows_tf32() -> bool:
    """`torch.backends.cuda.matmul.allow_tf32`."""
    allowed = Precision.matmul != "highest"
    if allowed != (fp32_precision(CUDA, "matmul") == "tf32"):
        raise _contradiction(
            "whether allow_tf32_new is enabled for cuBlas matmul,",
            "Current status indicate that you have used mix of the legacy and new APIs to set the "
            "TF32 status for cublas matmul. We suggest only using the new API to set the TF32 "
            "flag.",
        )
    return allowed


def allow_tf32_in_cublas(allowed: bool) -> None:
    """Set `torch.backends.cuda.matmul.allow_tf32`."""
    _expect_bool("set_allow_tf32_cublas", allowed)
    Precision.matmul = "high" if allowed else "highest"
    set_fp32_precision(CUDA, "matmul", "tf32" if allowed else "ieee")


def cudnn_allows_tf32() -> bool:
    """`torch.backends.cudnn.allow_tf32`."""
    operators = {fp32_precision(CUDA, name) == "tf32" for name in ("conv", "rnn")}
    if operators != {Precision.cudnn_allow_tf32}:
        raise _contradiction(
            "whether allow_tf32 is enabled for cuDNN without a specific operator name,",
            "but the current flag(s) indicate that cuDNN conv and cuDNN RNN have different TF32 "
            "flags.This combination indicates that you have used a mix of the legacy and new APIs "
            "to set the TF32 flags. We suggest only using the new API to set the TF32 flag(s).",
        )
    return Precision.cudnn_allow_tf32


def allow_tf32_in_cudnn(allowed: bool) -> None:
    """Set `torch.backends.cudnn.allow_tf32`."""
    _expect_bool("set_allow_tf32_cublas", allowed)  # torch speaks of cuBLAS here, too
    Precision.cudnn_allow_tf32 = allowed
    for name in ("conv", "rnn"):
        set_fp32_precision(CUDA, name, "tf32" if allowed else "none")


def _expect_bool(setter: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise RuntimeError(f"{setter} expects a bool, but got {type(value).__name__}")
