"""`torch._jit_internal`: marks of functions and types for TorchScript, by their older home."""

from __future__ import annotations

from typing import Any

from flambeau.jit import markers

__all__ = ["_copy_to_script_wrapper"]

_copy_to_script_wrapper = markers._copy_to_script_wrapper


class _Repeated:
    """`BroadcastingList2[int]`: one value, or as many in a list."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = _Repeated()
BroadcastingList2 = _Repeated()
BroadcastingList3 = _Repeated()


def __getattr__(name: str) -> Any:
    return getattr(markers, name)
