"""The elementwise functions that expressions are made of, with their NumPy form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_UFUNCS = (
    "add subtract multiply divide floor_divide remainder fmod power negative positive absolute "
    "sign exp exp2 expm1 log log2 log10 log1p sqrt square reciprocal sin cos tan arcsin arccos "
    "arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh hypot floor ceil trunc rint maximum "
    "minimum fmax fmin equal not_equal less less_equal greater greater_equal logical_and "
    "logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor invert left_shift "
    "right_shift isnan isinf isfinite signbit copysign nextafter ldexp logaddexp logaddexp2 "
    "conjugate deg2rad rad2deg gcd lcm heaviside"
).split()

PRIMITIVES: dict[str, Callable[..., Any]] = {name: getattr(np, name) for name in _UFUNCS}
PRIMITIVES["where"] = np.where


FLOAT_UFUNCS: dict[str, Any] = {}
"""What primitives are on float32 and float64, where that is one ufunc: {"inverse": reciprocal}."""


def add_primitive(name: str, function: Callable[..., Any], floats: Any = None) -> None:
    """Make `function` (ndarrays in, a new ndarray out) available to pointwise bodies as `name`.

    `floats`: the ufunc that gives the same for floats, if there is one.
    """
    PRIMITIVES[name] = function
    if floats is not None:
        FLOAT_UFUNCS[name] = floats
