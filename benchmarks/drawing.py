"""Tensors drawn by NumPy, so that every library works on the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Step = Callable[[], Any]
Cases = dict[str, Callable[[], Step]]


def drawn(torch: Any, *shape: int, seed: int = 0, scale: float = 1.0) -> Any:
    """Normal numbers, float32."""
    numbers = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return torch.from_numpy(numbers * np.float32(scale))


def choices(torch: Any, below: int, *shape: int, seed: int = 0) -> Any:
    """Integers from 0 to `below`, int64."""
    return torch.from_numpy(np.random.default_rng(seed).integers(0, below, shape))
