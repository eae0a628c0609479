"""Tensors moved between GPUs: nothing of it is there, and each name says so."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import NotImplementedInFlambeau, missing, not_implemented_text

NAMES = frozenset((
    "broadcast", "broadcast_coalesced", "reduce_add", "reduce_add_coalesced", "scatter", "gather",
))  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in NAMES:
        raise NotImplementedInFlambeau(not_implemented_text(f"torch.nn.parallel.comm.{name}"))
    return missing(__name__, name)
