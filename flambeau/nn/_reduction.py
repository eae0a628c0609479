"""`torch.nn._reduction`: the words of a loss's `reduction`, as numbers."""

from __future__ import annotations

from flambeau._ops.losses.elementwise import legacy_reduction, reduction_code

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]


def get_enum(reduction: str) -> int:
    """The number of a word: none 0, mean 1, sum 2.

    >>> from flambeau.nn import _reduction
    >>> _reduction.get_enum("sum")
    2
    """
    return reduction_code(reduction)


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """The word for the two flags of old; says that they are deprecated."""
    if emit_warning:
        return legacy_reduction(size_average, reduce)
    if reduce is not None and not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """The number for the two flags of old."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
