"""`map_location`: from the place a storage was saved at to the place it is loaded to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core.device import check_available, device
from flambeau._tensor.storage import Storage

Restore = Callable[[Storage, str], Storage]


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
        return lambda storage, location: restore_default(storage, map_location)
    if not callable(map_location):
        raise TypeError(f"'{type(map_location).__name__}' object is not callable")
    return lambda storage, location: _call(map_location, storage, location)


def _call(map_location: Callable[[Storage, str], Any], storage: Storage, location: str) -> Storage:
    result = map_location(storage, location)
    if result is None:
        return restore_default(storage, location)
    if not isinstance(result, Storage):
        raise TypeError(f"map_location must return a storage or None, got {type(result).__name__}")
    return result


def restore_default(storage: Storage, location: Any) -> Storage:
    """Bring a storage from the CPU to the device that `location` names."""
    name = str(location)
    kind = name.partition(":")[0]
    if kind == "cpu":
        return storage
    if kind == "cuda":
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
            "False. If you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU."
        )
    if kind == "meta":
        check_available(device("meta"))
    raise RuntimeError(
        "don't know how to restore data location of torch.storage.UntypedStorage "
        f"(tagged with {name})"
    )
