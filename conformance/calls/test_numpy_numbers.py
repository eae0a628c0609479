"""NumPy's numbers as arguments: what fills, sizes, dims, shifts; small types don't wrap around."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conformance.side_by_side import attempt, compare

FILLINGS = [np.int64(2), np.int8(-3), np.uint8(3), np.float64(2), np.float32(2.5), np.float16(2)]


@pytest.mark.parametrize("value", FILLINGS, ids=lambda value: type(value).__name__)
def test_filling(value: Any) -> None:
    def program(t: Any) -> Any:
        one = t.ones(1)
        made = [t.full((2,), value), t.full_like(one, value), one.new_full((2,), value)]
        return made, [made_too.fill_(value) for made_too in (t.ones(2), t.ones(2).long())]

    compare(program)


def test_arrays_are_no_numbers() -> None:
    def program(t: Any) -> Any:
        array, one = np.array(2.0), t.ones(1)
        calls = (lambda: t.full((1,), array), lambda: t.full_like(one, array),
                 lambda: one.new_full((1,), array))  # fmt: skip
        return [attempt(call) for call in calls]

    compare(program)


WHOLE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "roll": lambda t, x, n: (t.roll(x, n), t.roll(x, (n,), (1,)), x.roll(n, n)),
    "pad": lambda t, x, n: t.nn.functional.pad(x, (n, 0, n, n)),
    "chunk": lambda t, x, n: (x.chunk(n), t.tensor_split(x, n)),
    "diagonals": lambda t, x, n: (x.diag(n), x.diagonal(n), x.tril(n)),
    "tril_indices": lambda t, x, n: t.tril_indices(3, 3, n),
    "places": lambda t, x, n: (x.select(n, n), x.narrow(n, n, n), x.unfold(n, n, n)),
    "vander": lambda t, x, n: (t.vander(x[0], n), t.linalg.vander(x[0], N=n + 1)),
    "convolution": lambda t, x, n: (
        t.nn.functional.conv1d(x[None], t.ones(1, 2, 1), padding=n, stride=n, dilation=n),
        t.nn.functional.conv2d(x[None, None], t.ones(1, 1, 2, 2), padding=(n, n)),
    ),
    "pools": lambda t, x, n: (
        t.nn.functional.max_pool1d(x[None], n),
        t.nn.functional.avg_pool2d(x[None], (n, n)),
        t.nn.functional.adaptive_avg_pool1d(x[None], n),
    ),
    "interpolate": lambda t, x, n: (
        t.nn.functional.interpolate(x[None], scale_factor=n + n),
        t.nn.functional.interpolate(x[None], scale_factor=(np.float32(2),)),
        t.nn.functional.interpolate(x[None], size=n),
    ),
}


@pytest.mark.parametrize("kind", ["int64", "int32", "int8", "uint8"])
@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers(name: str, kind: str) -> None:
    number = getattr(np, kind)(1)
    compare(lambda t: WHOLE[name](t, t.arange(6.0).reshape(2, 3), number))


def test_gradients_of_shifts_by_small_types() -> None:
    def program(t: Any) -> Any:
        x = t.arange(3.0).requires_grad_()
        (t.roll(x, (np.uint8(1),), (0,)) * t.arange(3.0)).sum().backward()
        return x.grad

    compare(program)
