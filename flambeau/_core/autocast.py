"""Autocast's settings, per thread: for which devices operators choose a type, and which."""

from __future__ import annotations

import threading
from typing import Any

from flambeau._core import modes
from flambeau._core.device import device
from flambeau._core.dtype import bfloat16, dtype, float16

LOWER_TYPES = {
    "cpu": bfloat16, "cuda": float16, "xpu": float16, "mps": float16, "hpu": bfloat16,
    "xla": bfloat16, "ipu": float16, "mtia": float16, "maia": bfloat16, "privateuseone": float16,
}  # fmt: skip
"""The device types that know autocast, and the type that their fast operators get by default."""


class Settings(threading.local):
    """What the regions of one thread have set."""

    def __init__(self) -> None:
        self.enabled = dict.fromkeys(LOWER_TYPES, False)
        self.lower_types = dict(LOWER_TYPES)
        self.nesting = 0
        self.cache_enabled = True
        self.cache: dict[Any, Any] = {}  # parameters in other types: see `_ops.table.autocast`

    def set_enabled(self, kind: str, enabled: bool) -> None:
        """Switch a device type on or off; operators are watched while one that is there is on."""
        if kind in ("cpu", "cuda"):
            modes.watch.active += enabled - self.enabled[kind]
        self.enabled[kind] = enabled


settings = Settings()


class Snapshot:
    """This thread's settings at one time; as a context it brings them back for a while."""

    def __init__(self) -> None:
        self.enabled = dict(settings.enabled)
        self.lower_types = dict(settings.lower_types)
        self.cache_enabled = settings.cache_enabled

    def _restore(self) -> None:
        for kind, enabled in self.enabled.items():
            settings.set_enabled(kind, enabled)
        settings.lower_types.update(self.lower_types)
        settings.cache_enabled = self.cache_enabled

    def __enter__(self) -> None:
        self.before = Snapshot()
        self._restore()
        settings.nesting += 1

    def __exit__(self, *exc: object) -> None:
        settings.nesting -= 1
        if settings.nesting == 0:
            settings.cache.clear()
        self.before._restore()


class outside_regions:
    """No region is active: what is written to `out=` is computed in the types that are given."""

    def __enter__(self) -> None:
        self.before = {kind: settings.enabled[kind] for kind in ("cpu", "cuda")}
        for kind in self.before:
            settings.set_enabled(kind, False)

    def __exit__(self, *exc: object) -> None:
        for kind, enabled in self.before.items():
            settings.set_enabled(kind, enabled)


def kind_of(device_type: str) -> str | None:
    """The type of "cpu" and of "cpu:0" is "cpu"; None for a device that has no autocast."""
    kind = device(device_type).type
    return kind if kind in LOWER_TYPES else None


def lower_type(device_type: str) -> dtype:
    """The type of fast operators on a device, or torch's error for a device without any."""
    kind = kind_of(device_type)
    if kind is None:
        raise RuntimeError("unsupported scalarType")
    return settings.lower_types[kind]


def checked_kind(device_type: str) -> str:
    """The kind of a device, or torch's error for one without autocast."""
    kind = kind_of(device_type)
    if kind is None:
        raise RuntimeError("unknown device type for autocast in "
                           "get_autocast_dispatch_key_from_device_type")  # fmt: skip
    return kind
