"""`torch._tensor_str`: how tensors are shown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from flambeau._core.missing import missing
from flambeau._tensor.printing import get_printoptions, printoptions, set_printoptions
from flambeau._tensor.tensor import Tensor

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]


def _str(self: Tensor) -> str:
    """The text of a tensor."""
    return repr(self)


def __getattr__(name: str) -> Any:
    if name == "PRINT_OPTS":  # a picture of the options in force
        return SimpleNamespace(**get_printoptions())
    return missing(__name__, name)
