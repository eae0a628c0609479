"""Named tuples of several results, such as `torch.return_types.max`."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable
from typing import Any

RESULT_TYPES: dict[str, Any] = {}
"""All that were made, by their names."""


def result_type_of(title: str, names: Iterable[str]) -> Any:
    """The type of a name; it is made when it is first asked for."""
    if title not in RESULT_TYPES:
        fields = namedtuple(title, list(names), rename=True)  # type: ignore[misc]
        RESULT_TYPES[title] = type(title, (ReturnType, fields), {
            "__slots__": (), "__module__": "torch.return_types", "n_fields": len(fields._fields),
            "n_sequence_fields": len(fields._fields), "n_unnamed_fields": 0,
        })  # fmt: skip
    return RESULT_TYPES[title]


def rebuilt(title: str, names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    """Results out of a pickle."""
    return result_type_of(title, names)(values)


class ReturnType:
    """What the types have in common: they are made from a sequence and printed by line."""

    __slots__ = ()

    def __new__(cls, values: Any, *more: Any) -> Any:
        """`more`: as other named tuples are made, from values one by one."""
        made: Any = cls
        values = (values, *more) if more else values
        try:
            found = tuple(values)
        except TypeError:
            raise TypeError("constructor requires a sequence") from None
        if len(found) != made.n_fields:
            raise TypeError(
                f"torch.return_types.{cls.__name__}() takes a {made.n_fields}-sequence "
                f"({len(found)}-sequence given)"
            )
        return tuple.__new__(made, found)

    def __reduce__(self) -> Any:
        results: Any = self
        return rebuilt, (type(self).__name__, results._fields, tuple(results))

    def __repr__(self) -> str:
        results: Any = self
        pairs = zip(results._fields, results, strict=True)
        joined = ",\n".join([f"{name}={value!r}" for name, value in pairs])
        return f"torch.return_types.{type(self).__name__}(\n{joined})"
