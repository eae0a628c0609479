"""Values of programs as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._tensor.tensor import Tensor


def make_np(x: Any) -> np.ndarray:
    """An array of a tensor (bfloat16 as float32), an array, or a number.

    Raises:
        NotImplementedError: something else.
    """
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, Tensor):
        held: Any = x.detach().cpu()  # type: ignore[attr-defined]
        if held.dtype.is_floating_point and held.element_size() < 4:
            held = held.float()
        return held.numpy()  # type: ignore[no-any-return]
    if np.isscalar(x) and not isinstance(x, str):
        return np.array([x])
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")
