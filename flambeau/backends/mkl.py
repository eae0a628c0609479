"""`torch.backends.mkl`."""

from __future__ import annotations

from flambeau._core.missing import lazily

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """Whether Intel's MKL is used: no. NumPy's BLAS may be one, but flambeau does not see it."""
    return False


class verbose:
    """A block in which MKL would tell what it does; there is nothing to tell."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *exc: object) -> None:
        """Nothing was changed."""


__getattr__ = lazily(__name__)
