"""`map_location`: from the place a storage was saved at to the place it is loaded to.

Places have names: "cpu", "cuda:0". A registry of functions says how a storage is named and how it
is brought to a named place; users add their own devices with `register_package`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from flambeau._core.device import Cuda, check_available, device
from flambeau._tensor.meta import Pages
from flambeau._tensor.storage import UntypedStorage, elsewhere
from flambeau._tensor.typed_storage import TypedStorage

Restore = Callable[[UntypedStorage, str], UntypedStorage]
Tagger = Callable[[Any], str | None]
Deserializer = Callable[[Any, str], Any]


@dataclass(frozen=True, slots=True)
class Package:
    """How the storages of one kind of device are named and brought there."""

    priority: int
    tagger: Tagger
    deserializer: Deserializer


def restore_function(map_location: Any) -> Restore:
    """The function that brings a storage to its place.

    `map_location` is None, a device or its name, a dict from saved to wanted names, or a callable
    (storage, name) -> storage or None.
    """
    if map_location is None:
        return restore_default
    if isinstance(map_location, dict):
        table = map_location
        return lambda storage, location: restore_default(storage, table.get(location, location))
    if isinstance(map_location, bytes):
        map_location = map_location.decode("ascii")
    if isinstance(map_location, str | device):
        return lambda storage, location: restore_default(storage, str(map_location))
    if not callable(map_location):
        raise TypeError(f"'{type(map_location).__name__}' object is not callable")
    return lambda storage, location: _call(map_location, storage, location)


def _call(
    map_location: Callable[[UntypedStorage, str], Any], storage: UntypedStorage, location: str
) -> UntypedStorage:
    result = map_location(storage, location)
    return restore_default(storage, location) if result is None else _untyped(result)


def _untyped(result: Any) -> UntypedStorage:
    if isinstance(result, TypedStorage):
        return result.untyped()
    if not isinstance(result, UntypedStorage):
        raise TypeError(f"map_location must return a storage or None, got {type(result).__name__}")
    return result


def register_package(priority: int, tagger: Tagger, deserializer: Deserializer) -> None:
    """Add a kind of device; packages are asked in the order of their priority, lowest first.

    Args:
        priority: the CPU has 10, the devices of PyTorch itself 20 to 26.
        tagger: (storage) -> the name of its place, or None if it is none of this package's.
        deserializer: (storage on the CPU, name) -> the storage at that place, or None.
    """
    packages.append(Package(priority, tagger, deserializer))
    packages.sort(key=lambda package: package.priority)


def location_tag(storage: Any) -> str:
    """The name of a storage's place. Raises RuntimeError if no package knows it."""
    for package in packages:
        location = package.tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {_type_name(storage)}")


def restore_default(storage: Any, location: Any) -> Any:
    """Bring a storage from the CPU to the place that `location` names.

    Raises RuntimeError if no package knows the place, or the device is not there.
    """
    location = str(location)
    for package in packages:
        result = package.deserializer(storage, location)
        if result is not None:
            return result
    raise RuntimeError(
        f"don't know how to restore data location of {_type_name(storage)} (tagged with {location})"
    )


def _type_name(storage: Any) -> str:
    kind = "TypedStorage" if isinstance(storage, TypedStorage) else "UntypedStorage"
    return f"torch.storage.{kind}"


def validate_cuda_device(location: str) -> int:
    """The index of a CUDA device. Raises RuntimeError if it is not there."""
    if not Cuda.devices():
        _refuse("cuda", None, location)
    index = device(location).index or 0
    if index >= Cuda.count:
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {index} but "
            f"torch.cuda.device_count() is {Cuda.count}. Please use torch.load with map_location "
            "to map your storages to an existing device."
        )
    return index


def validate_hpu_device(location: str) -> int:
    """The index of an HPU. Raises RuntimeError if it is not there."""
    _refuse("hpu", None, location)
    return device(location).index or 0


# ---- PyTorch's own devices

MODULES = frozenset(("cuda", "xpu", "mtia"))  # the others have no module `torch.<name>`
TO_THE_CPU = (
    "If you are running on a CPU-only machine, please use torch.load with "
    "map_location=torch.device('cpu') to map your storages to the CPU."
)


def _tag(kind: str) -> Tagger:
    def tagger(storage: Any) -> str | None:
        return str(storage.device) if storage.device.type == kind else None

    return tagger


def _stay(storage: Any, location: str) -> Any:
    return storage if location == "cpu" else None


def _refuse(kind: str, storage: Any, location: str) -> Any:
    """Devices that flambeau has not; CUDA, if it is emulated, gets a copy of the storage."""
    if location != kind and not location.startswith(f"{kind}:"):
        return None
    if kind == "cuda" and Cuda.devices():
        index = validate_cuda_device(location)
        return elsewhere[0](storage, check_available(device("cuda", index)))
    if kind in MODULES:
        raise RuntimeError(
            f"Attempting to deserialize object on a {kind.upper()} device but "
            f"torch.{kind}.is_available() is False. {TO_THE_CPU}"
        )
    if kind == "hpu":
        raise RuntimeError(f"The HPU device module is not registered. {TO_THE_CPU}")
    if kind == "meta":
        return UntypedStorage(np.asarray(Pages(storage.nbytes())))
    return check_available(device(location))


PRIORITIES = {"cuda": 20, "mps": 21, "meta": 22, "hpu": 24, "xpu": 25, "mtia": 26}
packages = [
    Package(10, _tag("cpu"), _stay),
    *(Package(number, _tag(kind), partial(_refuse, kind)) for kind, number in PRIORITIES.items()),
]
