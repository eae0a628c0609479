"""What is seen of attempts: their results, or their errors, as plain data."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from conformance.autograd.observing import plain

ADDRESS = re.compile(r"0x[0-9a-f]+")


def tried(action: Callable[[], Any]) -> Any:
    """What an action returns, or its error with the whole text."""
    try:
        return seen(action())
    except NameError:  # a mistake in the scenario itself
        raise
    except Exception as error:
        return type(error).__name__, ADDRESS.sub("0x", str(error))


def seen(value: Any) -> Any:
    """Modules as their text and the names in them; everything else as plain data."""
    if hasattr(value, "named_modules"):
        return names_of(value)
    if isinstance(value, (tuple, list)):
        return [seen(item) for item in value]
    if isinstance(value, dict):
        return [(key, seen(item)) for key, item in value.items()]
    return plain(value)


def names_of(module: Any) -> Any:
    """A module's text and the names of what is in it, in order."""
    tables = [list(table) for table in (module._parameters, module._buffers, module._modules)]
    return [repr(module), tables, sorted(module._non_persistent_buffers_set), module.training]
