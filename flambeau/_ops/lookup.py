"""Public modules whose names are rows of one namespace: `torch.fft`, `torch.linalg`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core.missing import missing
from flambeau._ops.namespace import get
from flambeau._ops.op import BY_NAME


def names_of(namespace: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the module `flambeau.<namespace>`."""
    prefix = f"{namespace}."

    def find(name: str) -> Any:
        path = prefix + name
        return get(path) if path in BY_NAME else missing(f"flambeau.{namespace}", name)

    def listed() -> list[str]:
        return sorted(name.removeprefix(prefix) for name in BY_NAME if name.startswith(prefix))

    return find, listed
