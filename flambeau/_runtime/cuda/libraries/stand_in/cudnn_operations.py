"""What cuDNN's operations compute, with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from flambeau._runtime.cuda.libraries import cudnn_numbers as numbers
from flambeau._runtime.cuda.libraries.stand_in.memory import Refusal, tf32

Ints = tuple[int, ...]
POINTWISE: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, b: x + b, "sub": lambda x, b: x - b, "mul": lambda x, b: x * b,
    "div": lambda x, b: x / b, "exp": lambda x, b: np.exp(x), "log": lambda x, b: np.log(x),
    "relu": lambda x, b: np.maximum(x, 0), "identity": lambda x, b: x,
    "greater_equal": lambda x, b: x >= b,
}  # fmt: skip


def check_convolution(how: Any, x: Ints, w: Ints, y: Ints) -> None:
    """Refuse sizes that are not those of a convolution."""
    expected = [
        (size + low + high - gap * (taps - 1) - 1) // step + 1
        for size, taps, low, high, step, gap in zip(
            x[2:], w[2:], *(how.values[n] for n in ("pre", "post", "strides", "dilations")),
            strict=True)
    ]  # fmt: skip
    fits = x[1] % w[1] == 0 and w[0] % (x[1] // w[1]) == 0
    if list(y) != [x[0], w[0], *expected] or not fits:
        raise Refusal(numbers.BAD_PARAM)


def convolve(kind: str, given: list[Any], shape: Ints, padding: Ints, stride: Ints, dilation: Ints,
             rounded: bool) -> Any:  # fmt: skip
    """y of x and w, x of w and y, or w of x and y: tap by tap, in the groups' channels."""
    factors = [one if one is None or not rounded or one.dtype != np.float32 else tf32(one)
               for one in given]  # fmt: skip
    x, w, y = factors
    x_shape, w_shape, y_shape = (shape if one is None else one.shape for one in factors)
    kind_of = next(one.dtype for one in factors if one is not None)
    spatial = [size + 2 * pad for size, pad in zip(x_shape[2:], padding, strict=True)]
    padded = np.zeros((*x_shape[:2], *spatial), kind_of)
    inside: Any = (..., *(slice(pad, pad + n) for pad, n in zip(padding, x_shape[2:], strict=True)))
    if x is not None:
        padded[inside] = x
    groups = x_shape[1] // w_shape[1]
    sums = padded if kind == "data" else np.zeros(shape, kind_of)
    for tap in product(*map(range, w_shape[2:])):
        places: Any = (..., *(
            slice(t * gap, t * gap + (n - 1) * step + 1, step)
            for t, gap, n, step in zip(tap, dilation, y_shape[2:], stride, strict=True)
        ))  # fmt: skip
        for group in range(groups):
            channels = slice(group * w_shape[1], (group + 1) * w_shape[1])
            size = w_shape[0] // groups
            filters = slice(group * size, (group + 1) * size)
            one = padded[:, channels][places]
            at: Any = (filters, slice(None), *tap)
            if kind == "forward":
                sums[:, filters] += np.einsum("nc...,kc->nk...", one, w[at])
            elif kind == "data":
                one += np.einsum("nk...,kc->nc...", y[:, filters], w[at])
            else:
                images = len(one)
                grads = y[:, filters].reshape(images, size, -1)
                sums[at] += np.einsum("nkp,ncp->kc", grads, one.reshape(images, w_shape[1], -1))
    return sums[inside] if kind == "data" else sums
