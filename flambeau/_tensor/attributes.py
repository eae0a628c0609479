"""`tensor.__dict__`: what users keep on a tensor, without the fields that make it one.

Both lie in the one dictionary that Python gives an object, `fields_of(tensor)`, so that making a
tensor and reading its fields cost nothing. Programs that copy `__dict__` from tensor to tensor
would copy memory, shape and history with it; they are shown the rest only.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterable
from typing import Any

FIELDS: set[str] = set()
"""The names that users do not see; Tensor's annotations, and what others add."""


class TensorBase:
    """What Tensor is made from: an object with a dictionary."""


fields_of: Callable[[Any], dict[str, Any]] = TensorBase.__dict__["__dict__"].__get__
"""Everything that an object has, its fields included."""


class Attributes(dict[str, Any]):
    """A tensor's own attributes. What is changed here changes on the tensor, too."""

    __slots__ = ("_fields",)

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__((key, value) for key, value in fields.items() if key not in FIELDS)
        self._fields = fields

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        if name not in FIELDS:
            self._fields[name] = value

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._fields.pop(name, None)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """All attributes of another dictionary, too."""
        for name, value in dict(*args, **kwargs).items():
            self[name] = value

    def __ior__(self, other: Any) -> Attributes:  # type: ignore[override,misc]
        self.update(other)
        return self

    def setdefault(self, name: str, default: Any = None) -> Any:
        """What is there under a name, or from now on a default."""
        if name not in self:
            self[name] = default
        return self[name]

    def pop(self, name: str, *default: Any) -> Any:
        """Take an attribute away and give it."""
        self._fields.pop(name, None) if name in self else None
        return super().pop(name, *default)

    def popitem(self) -> tuple[str, Any]:
        """Take the last attribute away and give it with its name."""
        name, value = super().popitem()
        self._fields.pop(name, None)
        return name, value

    def clear(self) -> None:
        """Take all attributes away."""
        _remove(self._fields, list(self))
        super().clear()

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def _remove(fields: dict[str, Any], names: Iterable[str]) -> None:
    for name in names:
        fields.pop(name, None)


def _attributes(tensor: Any) -> dict[str, Any]:
    """What the user keeps on the tensor."""
    return Attributes(fields_of(tensor))


def _replace(tensor: Any, given: Any) -> None:
    if not isinstance(given, dict):
        kind = type(given).__name__
        raise TypeError(f"__dict__ must be set to a dictionary, not a '{kind}'")
    own = {name: value for name, value in given.items() if name not in FIELDS}
    _clear(tensor)
    fields_of(tensor).update(own)


def _clear(tensor: Any) -> None:
    fields = fields_of(tensor)
    _remove(fields, [name for name in fields if name not in FIELDS])


def slots_of(tensor: Any) -> dict[str, Any]:
    """What lies in slots of the user's class."""
    names = copyreg._slotnames(type(tensor))  # type: ignore[attr-defined]
    return {name: getattr(tensor, name) for name in names if hasattr(tensor, name)}


def put_in_slots(tensor: Any, slots: dict[str, Any]) -> None:
    """Fill slots as they were."""
    for name, value in slots.items():
        setattr(tensor, name, value)


attributes = property(_attributes, _replace, _clear)
