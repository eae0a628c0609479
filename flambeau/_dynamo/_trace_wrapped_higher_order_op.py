"""Where integers of one example index a tensor inside of `vmap`: here they may as they are."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import missing


class TransformGetItemToIndex:
    """A region in which `x[i]` takes 0-dim tensors inside of `vmap`, as it does everywhere."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
