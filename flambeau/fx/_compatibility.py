"""`torch.fx._compatibility`: marks that say what is promised about a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

PROMISED = "\n\n.. note::\n    Backwards-compatibility for this API is guaranteed.\n"
EXPERIMENTAL = "\n\n.. warning::\n    This API is experimental and is *NOT* backward-compatible.\n"
_BACK_COMPAT_OBJECTS: dict[Any, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """Mark a function or class, in its documentation, as one that will stay or that may change.

    >>> from flambeau.fx._compatibility import compatibility
    >>> @compatibility(is_backward_compatible=False)
    ... def double(x):
    ...     return 2 * x
    >>> "NOT" in double.__doc__, double(2)
    (True, 4)
    """

    def mark(marked: T) -> T:
        text = PROMISED if is_backward_compatible else EXPERIMENTAL
        marked.__doc__ = (marked.__doc__ or "") + text
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(marked)
        _MARKED_WITH_COMPATIBILITY.setdefault(marked)
        return marked

    return mark
