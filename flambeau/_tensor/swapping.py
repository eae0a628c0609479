"""`torch.utils.swap_tensors`: two tensors become each other."""

from __future__ import annotations

import copyreg
import weakref
from typing import Any

from flambeau._tensor.attributes import fields_of


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchange class, memory, gradient and attributes of two tensors; the objects stay.

    Raises:
        RuntimeError: somebody holds a weak reference to one of them, or their classes have
            different slots.
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    if set(copyreg._slotnames(type(t1))) != set(copyreg._slotnames(type(t2))):  # type: ignore[attr-defined]
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    t1.__class__, t2.__class__ = type(t2), type(t1)
    first, second = dict(fields_of(t1)), dict(fields_of(t2))
    for tensor, fields in ((t1, second), (t2, first)):
        fields.pop("_accumulator", None)  # knows its tensor by the object
        fields_of(tensor).clear()
        fields_of(tensor).update(fields)
