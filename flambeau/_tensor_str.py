"""`torch._tensor_str`: how tensors are shown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from flambeau._core.missing import missing
from flambeau._tensor.printing import (
    contents_text,
    get_printoptions,
    printoptions,
    set_printoptions,
    with_suffixes,
)
from flambeau._tensor.tensor import Tensor

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]


def _tensor_str(self: Tensor, indent: int) -> str:
    """The values of a tensor in brackets, further lines indented."""
    return contents_text(self.detach().clone().numpy(), indent)  # type: ignore[attr-defined]


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """A text with what follows the values, and the closing bracket."""
    width = get_printoptions()["linewidth"]
    return with_suffixes(tensor_str, suffixes, indent, width, new_line=force_newline)


def _str(self: Tensor) -> str:
    """The text of a tensor."""
    return repr(self)


def __getattr__(name: str) -> Any:
    if name == "PRINT_OPTS":  # a picture of the options in force
        return SimpleNamespace(**get_printoptions())
    return missing(__name__, name)
