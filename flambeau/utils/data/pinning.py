"""Batches in pinned memory, from which copies to a GPU need not wait."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any


def pinned(data: Any) -> Any:
    """A batch whose tensors, also those in containers, lie in pinned memory.

    Objects with a method `pin_memory` are asked for it; anything else stays as it is.
    """
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: pinned(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(pinned, data))
    if isinstance(data, tuple):
        return [pinned(item) for item in data]  # as torch: a tuple becomes a list
    if isinstance(data, Sequence):
        return _like_sequence(data, [pinned(item) for item in data])
    return data


def _like_mapping(data: Any, items: dict[Any, Any]) -> Any:
    """The items in a mapping of the same class, where it can be made."""
    try:
        if hasattr(data, "update"):
            result = copy.copy(data)
            result.update(items)
            return result
        return type(data)(items)
    except TypeError:
        return items


def _like_sequence(data: Any, items: list[Any]) -> Any:
    """The items in a sequence of the same class, where it can be made."""
    try:
        return type(data)(items)
    except TypeError:
        return items
