"""On which device the results of a call with fake tensors are."""

from __future__ import annotations

from typing import Any

from flambeau._core.device import default_device
from flambeau._core.device import device as device_
from flambeau._subclasses.errors import FakeTensorDeviceMismatchError

MISMATCH = (
    "Expected all tensors to be on the same device, but found at least two devices, {} and {}!"
)
ACROSS = frozenset("copy_ index index_put index_put_ _index_put_impl_".split())
"""Operators whose first tensor decides: the others may be elsewhere."""


def with_index(place: Any) -> Any:
    """A device with its number: the first GPU for `cuda`."""
    found = device_(place)
    return device_("cuda", 0) if found.type == "cuda" and found.index is None else found


def of_result(func: Any, args: Any, kwargs: dict[str, Any], tensors: Any) -> Any:
    """The device of a call's results: the one that it names, or that of its tensors.

    Raises:
        FakeTensorDeviceMismatchError: the tensors are on several.
    """
    if kwargs.get("device") is not None:
        return with_index(kwargs["device"])
    if not tensors:
        return with_index(default_device())
    if func._opname in ACROSS:
        return tensors[0].device
    return common(tensors)


def common(tensors: Any) -> Any:
    """The device of some tensors; numbers on the CPU go with any.

    Raises:
        FakeTensorDeviceMismatchError: the tensors are on several.
    """
    found, is_number = None, False
    for tensor in tensors:
        place = tensor.device
        if place == found:
            is_number = is_number and not tensor.dim()
        elif found is None or is_number:
            found, is_number = place, place.type == "cpu" and not tensor.dim()
        elif not (place.type == "cpu" and not tensor.dim()):
            raise FakeTensorDeviceMismatchError(MISMATCH.format(found, place))
    return found


WHERE = ("device", "pin_memory")
"""Options that say where a new tensor lies."""


def is_told(func: Any) -> bool:
    """Whether an operator is told on which device its result shall be."""
    schema = getattr(func, "_schema", None)
    return schema is not None and any(p.name == "device" for p in schema.arguments)
