"""What runs in a trace in the place of functions that take a shorter way in eager. The names of
variables here are those of the trace's code, so this is no module of recipes."""

from __future__ import annotations

from typing import Any


def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """With the norm in the input's shape."""
    denom = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / denom
