"""`torch.signal.windows`: symmetric windows unless `sym=False`, which makes them periodic."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.device import check_available
from flambeau._core.layout import strided
from flambeau._ops.fft.windows import cosine_sum
from flambeau._ops.fft.windows import kaiser as kaiser_curve
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor, wrap

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
    "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


SETTINGS = ("dtype", "layout", "device", "requires_grad")
"""What all windows may be told beside their own parameters."""


def _made(name: str, M: int, curve: Callable[[np.ndarray], np.ndarray], settings: dict[str, Any],
          single: bool = True) -> Tensor:  # fmt: skip
    """The window of M values; checks and the empty and one-value cases are common to all."""
    dtype = _checked_type(name, M, settings)
    constant = M == 0 or (M == 1 and single)
    values = np.ones(M) if constant else curve(np.arange(M, dtype=np.float64))
    result = wrap(values.astype(dtype.numpy_dtype))
    if not settings.get("requires_grad"):
        return result
    result.requires_grad = True  # torch's leaf is what a curve is computed from
    return result if constant else ops.clone(result)  # type: ignore[no-any-return]


def _checked_type(name: str, M: int, settings: dict[str, Any]) -> dt.dtype:
    """The type of a window, after what is looked at before the parameters of its own."""
    for word in settings:
        if word not in SETTINGS:
            raise TypeError(f"{name}() got an unexpected keyword argument '{word}'")
    dtype, layout = settings.get("dtype"), settings.get("layout", strided)
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    check_available(settings.get("device"))
    dtype = dt.default_dtype() if dtype is None else dtype
    if dtype not in (dt.float32, dt.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return dtype  # type: ignore[no-any-return]


def _length(M: int, sym: bool) -> int:
    return M if sym or M == 1 else M + 1


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True,
                **settings: Any) -> Tensor:  # fmt: skip
    """`exp(-|n - center| / tau)`; `center` is the middle unless a periodic window has its own."""
    _checked_type("exponential", M, settings)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = (_length(M, sym) - 1) / 2 if center is None else center
    return _made("exponential", M, lambda n: np.exp(-np.abs(n - middle) / tau), settings,
                 False)  # fmt: skip


def cosine(M: int, *, sym: bool = True, **settings: Any) -> Tensor:
    """`sin(pi (n + 1/2) / M)`."""
    length = _length(M, sym)
    return _made("cosine", M, lambda n: np.sin(np.pi * (n + 0.5) / length), settings, False)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **settings: Any) -> Tensor:
    """`exp(-((n - middle) / std)^2 / 2)`."""
    _checked_type("gaussian", M, settings)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    middle = (_length(M, sym) - 1) / 2
    return _made("gaussian", M, lambda n: np.exp(-(((n - middle) / std) ** 2) / 2), settings,
                 False)  # fmt: skip


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **settings: Any) -> Tensor:
    """The Bessel window of shape `beta`."""
    _checked_type("kaiser", M, settings)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    length = _length(M, sym)
    return _made("kaiser", M, lambda n: kaiser_curve(n, length, beta), settings)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **settings: Any) -> Tensor:
    """The sum of the cosines of order 0, 1, ... with weights `a` and alternating signs."""
    _checked_type("general_cosine", M, settings)
    if M in (0, 1):
        return _made("general_cosine", M, np.ones_like, settings)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    length = _length(M, sym)
    return _made("general_cosine", M, lambda n: cosine_sum(n, length, *weights), settings)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **settings: Any) -> Tensor:
    """`alpha - (1 - alpha) cos(2 pi n / (M - 1))`."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **settings)


def hamming(M: int, *, sym: bool = True, **settings: Any) -> Tensor:
    """The Hamming window."""
    return general_hamming(M, sym=sym, **settings)


def hann(M: int, *, sym: bool = True, **settings: Any) -> Tensor:
    """The Hann window."""
    return general_hamming(M, alpha=0.5, sym=sym, **settings)


def blackman(M: int, *, sym: bool = True, **settings: Any) -> Tensor:
    """The Blackman window."""
    _checked_type("blackman", M, settings)
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **settings)


def nuttall(M: int, *, sym: bool = True, **settings: Any) -> Tensor:
    """The minimum four-term Blackman-Harris window of Nuttall."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **settings)


def bartlett(M: int, *, sym: bool = True, **settings: Any) -> Tensor:
    """A triangle from 0 over 1 to 0."""
    length = _length(M, sym)
    return _made("bartlett", M, lambda n: 1 - np.abs(2 * n / (length - 1) - 1), settings)
