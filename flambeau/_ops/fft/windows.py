"""Signal windows of the `torch` namespace: `hann_window`, `hamming_window`, ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.device import refuse_pinned
from flambeau._core.doc_text import with_example
from flambeau._ops.factories.making import OPTIONS, finish, options
from flambeau._ops.table.op import composite

Curve = Callable[..., np.ndarray]


def cosine_sum(places: np.ndarray, length: int, *weights: float) -> np.ndarray:
    """`a0 - a1 cos(2 pi n / (N - 1)) + a2 cos(4 pi n / (N - 1)) - ...`."""
    total = np.zeros_like(places)
    for order, weight in enumerate(weights):
        total += (-1) ** order * weight * np.cos(2 * np.pi * order * places / (length - 1))
    return total


def triangle(places: np.ndarray, length: int) -> np.ndarray:
    """Rising to 1 in the middle and falling again, 0 at both ends."""
    slope = 2 * places / (length - 1)
    return np.where(places <= (length - 1) / 2, slope, 2 - slope)


def kaiser(places: np.ndarray, length: int, beta: float) -> np.ndarray:
    """The Bessel window `I0(beta sqrt(1 - x^2)) / I0(beta)` for x from -1 to 1."""
    position = 2 * places / (length - 1) - 1
    return np.i0(beta * np.sqrt(np.maximum(1 - position * position, 0))) / np.i0(beta)


def _window(name: str, curve: Curve, window_length: int, periodic: bool, numbers: Any,
            dtype: Any, layout: Any, device: Any, requires_grad: bool) -> Any:  # fmt: skip
    numpy_dtype = options(dtype, layout, device)
    if numpy_dtype.kind not in ("fVc" if window_length in (0, 1) else "fV"):
        kind = dt.from_numpy_dtype(numpy_dtype).c_name
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: TensorOptions(dtype={kind}, device=cpu, "
            "layout=Strided (default), requires_grad=false (default), pinned_memory=false, "
            "memory_format=(nullopt))"
        )
    if window_length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got "
                           f"window_length={window_length}")  # fmt: skip
    if window_length <= 1:
        return finish(np.ones(window_length, numpy_dtype), requires_grad)
    length = window_length + 1 if periodic else window_length
    places = np.arange(window_length, dtype=np.float64)
    return finish(curve(places, length, *numbers).astype(numpy_dtype), requires_grad)


def _hann(places: np.ndarray, length: int) -> np.ndarray:
    return cosine_sum(places, length, 0.5, 0.5)


def _blackman(places: np.ndarray, length: int) -> np.ndarray:
    return cosine_sum(places, length, 0.42, 0.5, 0.08)


def _plain_window(name: str, curve: Curve, doc: str, printed: str) -> None:
    def function(window_length: int, periodic: bool = True, *, dtype: Any = None,
                 layout: Any = None, device: Any = None, pin_memory: bool = False,
                 requires_grad: bool = False) -> Any:  # fmt: skip
        if pin_memory is not False:
            refuse_pinned(name, pin_memory)
        return _window(name, curve, window_length, periodic, (), dtype, layout, device,
                       requires_grad)  # fmt: skip

    function.__name__ = name
    function.__doc__ = with_example(
        f"{doc}, of shape [window_length]; a `periodic` one lacks the last of length + 1 values.",
        f"torch.{name}(5, periodic=False)[1:4]", printed,
    )  # fmt: skip
    composite(f"{name}(int window_length, bool periodic=True, {OPTIONS}) -> Tensor",
              method=False, several=True)(function)  # fmt: skip


_plain_window("hann_window", _hann, "Hann's window: half a cosine up and down",
              "tensor([0.5000, 1.0000, 0.5000])")  # fmt: skip
_plain_window("blackman_window", _blackman, "Blackman's window: three cosines",
              "tensor([0.3400, 1.0000, 0.3400])")  # fmt: skip
_plain_window("bartlett_window", triangle, "Bartlett's window: a triangle",
              "tensor([0.5000, 1.0000, 0.5000])")  # fmt: skip


@composite(
    "hamming_window(int window_length, bool periodic=True, float alpha=0.54, float "
    f"beta=0.46, {OPTIONS}) -> Tensor",
    method=False,
)
def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54,
                   beta: float = 0.46, *, dtype: Any = None, layout: Any = None,
                   device: Any = None, pin_memory: bool = False,
                   requires_grad: bool = False) -> Any:  # fmt: skip
    """`alpha - beta cos(2 pi n / (N - 1))`.

    >>> import flambeau as torch
    >>> torch.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    if pin_memory is not False:
        refuse_pinned("hamming_window", pin_memory)
    return _window("hamming_window", cosine_sum, window_length, periodic, (alpha, beta), dtype,
                   layout, device, requires_grad)  # fmt: skip


@composite(
    f"kaiser_window(int window_length, bool periodic=True, float beta=12.0, {OPTIONS}) -> Tensor",
    method=False,
)
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *,
                  dtype: Any = None, layout: Any = None, device: Any = None,
                  pin_memory: bool = False, requires_grad: bool = False) -> Any:  # fmt: skip
    """The Kaiser window of shape `beta`.

    >>> import flambeau as torch
    >>> torch.kaiser_window(4, periodic=False)
    tensor([5.2773e-05, 5.1884e-01, 5.1884e-01, 5.2773e-05])
    """
    if pin_memory is not False:
        refuse_pinned("kaiser_window", pin_memory)
    return _window("kaiser_window", kaiser, window_length, periodic, (beta,), dtype, layout,
                   device, requires_grad)  # fmt: skip
