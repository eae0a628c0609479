"""`torch.nn.attention`: which implementation `scaled_dot_product_attention` may use."""

from __future__ import annotations

import contextlib
import enum
import importlib
from collections.abc import Iterator
from typing import Any

from flambeau._core import attention_backends
from flambeau._core.missing import missing

__all__ = ["WARN_FOR_UNFUSED_KERNELS", "SDPBackend", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False
"""Kept for programs that set it: there is one implementation, so nothing to warn of."""


class SDPBackend(enum.Enum):
    """PyTorch's implementations of attention, with its numbers."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    def __str__(self) -> str:
        return f"SDPBackend.{self.name}"


NAME_OF = {
    SDPBackend.MATH: "math",
    SDPBackend.FLASH_ATTENTION: "flash",
    SDPBackend.EFFICIENT_ATTENTION: "mem_efficient",
    SDPBackend.CUDNN_ATTENTION: "cudnn",
    SDPBackend.OVERRIDEABLE: "overrideable",
}


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """What is permitted now, in PyTorch's order or in that of priority."""
    of_name = {name: backend for backend, name in NAME_OF.items()}
    backends = [of_name[name] for name in attention_backends.Permitted.names]
    if with_priority:
        backends.sort(key=lambda one: attention_backends.Permitted.priority.index(one.value))
    return backends


@contextlib.contextmanager
def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[dict[str, Any]]:
    """Within the block, attention may use these implementations only.

    `set_priority`: the earlier ones in the list are to be preferred, which is kept and reported.

    Raises:
        AssertionError: neither an SDPBackend nor a list of them.
        RuntimeError: from `scaled_dot_product_attention`, if what is permitted does not exist for
            the CPU or for the inputs.
    """
    if not isinstance(backends, list | SDPBackend):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    wanted = backends if isinstance(backends, list) else [backends]
    permitted = attention_backends.Permitted
    before, priority = permitted.names, permitted.priority
    attention_backends.permit(tuple(NAME_OF[one] for one in wanted if one in NAME_OF))
    if set_priority:
        first = dict.fromkeys(one.value for one in wanted)
        permitted.priority = tuple(dict.fromkeys((*first, *priority)))
    try:
        yield {}
    finally:
        attention_backends.permit(before)
        permitted.priority = priority


def __getattr__(name: str) -> Any:
    if name == "bias":
        return importlib.import_module(f"{__name__}.bias")
    return missing(__name__, name)
