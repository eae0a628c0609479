"""Where integers of one example index a tensor inside of `vmap`: here they may as they are."""

from __future__ import annotations

from flambeau._core.missing import lazily


class TransformGetItemToIndex:
    """A region in which `x[i]` takes 0-dim tensors inside of `vmap`, as it does everywhere."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


__getattr__ = lazily(__name__)
