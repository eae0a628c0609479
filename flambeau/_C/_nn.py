"""`torch._C._nn`: how arguments of `to` are read; libraries have a `to` of their own."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import lazily
from flambeau._ops.copying.to_arguments import parse_to, waits_not


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Device, dtype, `non_blocking` and memory format of the arguments of `Module.to`.

    Raises:
        RuntimeError: `copy` was given.
        TypeError: arguments that fit none of the forms of `to`.
    """
    if not args and not kwargs:
        return None, None, False, None
    dtype, place, copy, memory_format = parse_to(args, kwargs)
    if copy:
        raise RuntimeError(".to() does not accept copy argument")
    return place, dtype, waits_not(args, kwargs), memory_format


__getattr__ = lazily(__name__)
