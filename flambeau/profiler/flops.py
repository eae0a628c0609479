"""How many floating-point operations an operator takes, by PyTorch's formulas.

A multiplication and an addition count as one each: a product of [m, k] and [k, n] takes 2·m·n·k.
PyTorch counts products, the convolution of images, and elementwise `mul` and `add`; what is not in
`FORMULAS` counts as none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Shapes = list[list[int]]
Values = tuple[Any, ...]


def _product(left: list[int], right: list[int]) -> int:
    """Of the last two dimensions, for each of the others."""
    return 2 * math.prod(left[:-2]) * left[-2] * left[-1] * right[-1]


def _mm(shapes: Shapes, values: Values) -> int:
    return _product(shapes[0], shapes[1])


def _addmm(shapes: Shapes, values: Values) -> int:
    return _product(shapes[1], shapes[2])


def _elementwise(shapes: Shapes, values: Values) -> int:
    return math.prod(shapes[0])


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (tuple(value) * 2)[:2]  # type: ignore[return-value]


def _conv2d(shapes: Shapes, values: Values) -> int:
    """`conv2d(input, weight, bias, stride, padding, dilation, groups)`."""
    given = (*values, *(None, None, None, 1, 0, 1, 1)[len(values) :])
    stride, padding, dilation, groups = given[3:7]
    image, weight = shapes[0], shapes[1]
    if isinstance(padding, str) or len(image) != 4:  # noqa: PLR2004
        return 0
    sizes = []
    for n, k, step, room, spread in zip(
        image[2:], weight[2:], _pair(stride), _pair(padding), _pair(dilation), strict=True
    ):
        sizes.append((n + 2 * room - spread * (k - 1) - 1) // step + 1)
    per_place = math.prod(weight[2:]) * image[1] * weight[0] // groups
    return 2 * image[0] * math.prod(sizes) * per_place


def _linear_backward(shapes: Shapes, values: Values) -> int:
    """`linear_backward(input, grad, weight, wanted)`: a product for input and for weight."""
    wanted = values[-1] if isinstance(values[-1], (tuple, list)) else (True, True)
    grad, features = shapes[1], shapes[0][-1]
    return 2 * math.prod(grad) * features * sum(map(bool, wanted[:2]))


FORMULAS: dict[str, Callable[[Shapes, Values], int]] = {
    "aten::mm": _mm,
    "aten::bmm": _mm,
    "aten::addmm": _addmm,
    "aten::baddbmm": _addmm,
    "aten::mul": _elementwise,
    "aten::add": _elementwise,
    "aten::conv2d": _conv2d,
    "aten::linear_backward": _linear_backward,
}
"""Key -> (shapes, arguments that are no tensors) -> how many."""
