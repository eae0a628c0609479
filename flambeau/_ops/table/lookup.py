"""Public modules whose names are rows of one namespace: `torch.fft`, `torch.linalg`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from flambeau._core.missing import missing
from flambeau._ops.table.namespace import get
from flambeau._ops.table.op import BY_NAME


def names_of(namespace: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the module `flambeau.<namespace>`."""
    prefix = f"{namespace}."
    module = f"flambeau.{namespace}"

    def find(name: str) -> Any:
        if name == "__all__":
            return listed()
        if prefix + name not in BY_NAME:
            return missing(module, name)
        found = get(prefix + name)
        setattr(sys.modules[module], name, found)
        return found

    def listed() -> list[str]:
        return sorted(
            name.removeprefix(prefix) for name in list(BY_NAME) if name.startswith(prefix)
        )

    return find, listed
