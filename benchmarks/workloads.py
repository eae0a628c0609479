"""Work to be timed under any library with PyTorch's interface, in groups.

`GROUPS[name](torch)` gives the cases of a group: name -> a function that builds a step. A step
returns a tensor, from which the driver sees that both sides computed the same. Tensors are drawn
by NumPy, so that both sides work on the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drawing import Cases, Step, drawn

MILLION = 1 << 20


def forward(function: Callable[..., Any], *tensors: Any) -> Step:
    """A step that calls a function."""
    return lambda: function(*tensors)


def both_ways(torch: Any, function: Callable[..., Any], *tensors: Any) -> Step:
    """A step that calls a function and takes the gradients of all its tensors."""
    inputs = [tensor.requires_grad_() for tensor in tensors]
    slope = drawn(torch, *function(*inputs).shape, seed=7)

    def step() -> Any:
        return torch.autograd.grad(function(*inputs), inputs, slope)[0]

    return step


def pointwise(torch: Any) -> Cases:
    """16 M elements, 64 MB a tensor."""
    functional = torch.nn.functional

    def case(function: Callable[..., Any], count: int) -> Callable[[], Step]:
        return lambda: forward(
            function, *[drawn(torch, 16 * MILLION, seed=k) for k in range(count)]
        )

    def into_out() -> Step:
        x, y = (drawn(torch, 16 * MILLION, seed=k) for k in range(2))
        out = torch.empty(16 * MILLION)
        return lambda: torch.add(x, y, out=out)

    return {
        "add": case(lambda x, y: x + y, 2),
        "add out=": into_out,
        "x*y+z": case(lambda x, y, z: x * y + z, 3),
        "six operators": case(lambda x, y, z: ((x * y + z) * x + y) * z + x, 3),
        "exp": case(torch.exp, 1),
        "tanh": case(torch.tanh, 1),
        "sigmoid": case(torch.sigmoid, 1),
        "gelu": case(functional.gelu, 1),
        "gelu tanh": case(lambda x: functional.gelu(x, approximate="tanh"), 1),
        "relu both ways": lambda: both_ways(torch, torch.relu, drawn(torch, 16 * MILLION)),
    }


def reductions(torch: Any) -> Cases:
    """4096 rows of 1024, and a million elements to sort."""
    functional = torch.nn.functional

    def table(function: Callable[..., Any]) -> Callable[[], Step]:
        return lambda: forward(function, drawn(torch, 4096, 1024))

    def million(function: Callable[..., Any]) -> Callable[[], Step]:
        return lambda: forward(function, drawn(torch, MILLION))

    def norm(x: Any, weight: Any, bias: Any) -> Any:
        return functional.layer_norm(x, (1024,), weight, bias)

    weights = [drawn(torch, 1024, seed=k) for k in (1, 2)]
    return {
        "softmax": table(lambda x: torch.softmax(x, -1)),
        "softmax both ways": lambda: both_ways(
            torch, lambda x: torch.softmax(x, -1), drawn(torch, 4096, 1024)),
        "layer_norm": table(lambda x: norm(x, *weights)),
        "layer_norm both ways": lambda: both_ways(
            torch, norm, drawn(torch, 4096, 1024), *[w.clone() for w in weights]),
        "sum": table(lambda x: x.sum()),
        "mean dim 0": table(lambda x: x.mean(0)),
        "mean dim 1": table(lambda x: x.mean(1)),
        "amax dim 1": table(lambda x: x.amax(1)),
        "argmax dim 1": table(lambda x: x.argmax(1)),
        "cumsum dim 1": table(lambda x: x.cumsum(1)),
        "topk 10 dim 1": table(lambda x: x.topk(10, 1)[0]),
        "transposed copy": table(
            lambda x: x.t().clone(memory_format=torch.contiguous_format)),
        "sort": million(lambda x: torch.sort(x)[0]),
        "topk 100": million(lambda x: torch.topk(x, 100)[0]),
    }  # fmt: skip


def products(torch: Any, name: str) -> Cases:
    """Square matrices and a batch of small ones."""
    dtype = getattr(torch, name)

    def case(*shape: int) -> Callable[[], Step]:
        return lambda: forward(
            torch.matmul, *[drawn(torch, *shape, seed=k).to(dtype) for k in range(2)]
        )

    cases = {str(n): case(n, n) for n in (64, 128, 256, 512, 1024, 2048)}
    return {**cases, "512 of 32": case(512, 32, 32)}


SHAPES = {  # channels in and out, side, kernel, stride, groups
    "7x7 stride 2, 3 -> 64 at 224": (3, 64, 224, 7, 2, 1),
    "3x3, 64 -> 64 at 56": (64, 64, 56, 3, 1, 1),
    "3x3, 128 -> 128 at 28": (128, 128, 28, 3, 1, 1),
    "1x1, 256 -> 64 at 56": (256, 64, 56, 1, 1, 1),
    "3x3, 512 -> 512 at 7": (512, 512, 7, 3, 1, 1),
    "depthwise 3x3, 96 at 56": (96, 96, 56, 3, 1, 96),
}


def convolutions(torch: Any) -> Cases:
    """Batches of eight images."""

    def case(shape: Any, train: bool) -> Step:
        inside, outside, side, kernel, stride, groups = shape

        def convolve(x: Any, weight: Any, bias: Any) -> Any:
            return torch.nn.functional.conv2d(
                x, weight, bias, stride=stride, padding=kernel // 2, groups=groups)  # fmt: skip

        tensors = (drawn(torch, 8, inside, side, side),
                   drawn(torch, outside, inside // groups, kernel, kernel, seed=1),
                   drawn(torch, outside, seed=2))  # fmt: skip
        return both_ways(torch, convolve, *tensors) if train else forward(convolve, *tensors)

    cases: Cases = {}
    for train in (False, True):
        for name, shape in SHAPES.items():
            label = f"{name}, both ways" if train else name
            cases[label] = lambda shape=shape, train=train: case(shape, train)  # type: ignore[misc]
    return cases


def small(torch: Any) -> Cases:
    """Where the arithmetic is free: single operators and the training of tiny models."""
    import op_overhead
    import tiny_training

    def case(build: Callable[[Any], Step]) -> Callable[[], Step]:
        return lambda: build(torch)

    listed = [*op_overhead.CASES, *tiny_training.CASES]
    return {one.name: case(one.build) for one in listed}


def _models(torch: Any) -> Cases:
    import models

    return models.cases(torch)


GROUPS: dict[str, Callable[[Any], Cases]] = {
    "pointwise": pointwise,
    "reductions": reductions,
    "matmul float32": lambda torch: products(torch, "float32"),
    "matmul bfloat16": lambda torch: products(torch, "bfloat16"),
    "conv2d": convolutions,
    "models": _models,
    "small": small,
}
