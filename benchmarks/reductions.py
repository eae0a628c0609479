"""Reductions, softmax, normalisation and losses: `python benchmarks/reductions.py [words]`.

Large cases show kernels, small ones what a call costs. Gradients include the forward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness import Case, run

ROWS, COLUMNS = 4096, 1024
Function = Callable[..., Any]


def forward(function: Function, *shapes: Any) -> Callable[[Any], Callable[[], Any]]:
    """Times `function(library, *tensors)` without recording."""

    def build(library: Any) -> Callable[[], Any]:
        tensors = made(library, shapes)

        def step() -> Any:
            with library.no_grad():
                return function(library, *tensors)

        return step

    return build


def gradient(function: Function, *shapes: Any) -> Callable[[Any], Callable[[], Any]]:
    """Times the function and its gradient with respect to every float tensor."""

    def build(library: Any) -> Callable[[], Any]:
        tensors = made(library, shapes)
        wanted = [t.requires_grad_() for t in tensors if t.is_floating_point()]
        grad = library.ones_like(function(library, *tensors)) * 0.5

        def step() -> Any:
            return library.autograd.grad(function(library, *tensors), wanted, grad)

        return step

    return build


def made(library: Any, shapes: Any) -> list[Any]:
    """Random tensors; a pair (count, below) stands for that many class indices."""
    library.manual_seed(0)
    return [library.randint(0, shape["below"], (shape["count"],)) if isinstance(shape, dict)
            else library.randn(*shape) for shape in shapes]  # fmt: skip


def layer_norm(library: Any, x: Any, weight: Any, bias: Any) -> Any:
    """Over the last dim."""
    return library.nn.functional.layer_norm(x, weight.shape, weight, bias)


def batch_norm(library: Any, x: Any, weight: Any, bias: Any) -> Any:
    """With statistics of the batch."""
    return library.nn.functional.batch_norm(x, None, None, weight, bias, True)


def fixed_norm(library: Any, x: Any, weight: Any, bias: Any, mean: Any) -> Any:
    """With given statistics."""
    norm = library.nn.functional.batch_norm
    return norm(x, mean, weight * weight + 1, weight, bias, False)


def cross_entropy(library: Any, x: Any, target: Any) -> Any:
    """The mean."""
    return library.nn.functional.cross_entropy(x, target)


def group_norm(library: Any, x: Any, weight: Any, bias: Any) -> Any:
    """Eight groups."""
    return library.nn.functional.group_norm(x, 8, weight, bias)


def rms_norm(library: Any, x: Any, weight: Any) -> Any:
    """Over the last dim."""
    return library.nn.functional.rms_norm(x, weight.shape, weight)


def softmax(library: Any, x: Any) -> Any:
    """Over the last dim."""
    return library.softmax(x, -1)


TABLE, COLUMN = (ROWS, COLUMNS), (COLUMNS,)
SIMPLE: dict[str, Function] = {
    "sum": lambda library, x: x.sum(),
    "mean dim 0": lambda library, x: x.mean(0),
    "mean dim 1": lambda library, x: x.mean(1),
    "amax dim 1": lambda library, x: x.amax(1),
    "max dim 1": lambda library, x: x.max(1),
    "argmax dim 1": lambda library, x: x.argmax(1),
    "argmax dim 0": lambda library, x: x.argmax(0),
    "var dim 1": lambda library, x: x.var(1),
    "std": lambda library, x: x.std(),
    "norm": lambda library, x: x.norm(),
    "logsumexp dim 1": lambda library, x: x.logsumexp(1),
    "softmax": softmax,
    "softmax dim 0": lambda library, x: library.softmax(x, 0),
    "log_softmax": lambda library, x: library.log_softmax(x, -1),
}
CASES = [Case(name, forward(function, TABLE), 1.0) for name, function in SIMPLE.items()]
CASES += [
    Case("softmax gradient", gradient(softmax, TABLE), 1.0),
    Case("layer_norm", forward(layer_norm, TABLE, COLUMN, COLUMN), 1.0),
    Case("layer_norm gradient", gradient(layer_norm, TABLE, COLUMN, COLUMN), 1.0),
    Case("rms_norm", forward(rms_norm, TABLE, COLUMN), 1.0),
    Case("rms_norm gradient", gradient(rms_norm, TABLE, COLUMN), 1.0),
    Case("softmax [12, 4, 64, 64]", forward(softmax, (12, 4, 64, 64)), 1.0),
    Case("cross_entropy [768, 65]",
         forward(cross_entropy, (768, 65), {"count": 768, "below": 65}), 1.0),
    Case("cross_entropy [768, 65] gradient",
         gradient(cross_entropy, (768, 65), {"count": 768, "below": 65}), 1.0),
    Case("cross_entropy [1120, 2000]",
         forward(cross_entropy, (1120, 2000), {"count": 1120, "below": 2000}), 1.0),
    Case("cross_entropy [1120, 2000] gradient",
         gradient(cross_entropy, (1120, 2000), {"count": 1120, "below": 2000}), 1.0),
    Case("mse_loss", forward(lambda library, x, y: library.nn.functional.mse_loss(x, y),
                             TABLE, TABLE), 1.0),
]  # fmt: skip
for size in ((1, 256, 128, 128), (8, 64, 56, 56)):
    channels = (size[1],)
    parameters = (channels, channels)
    CASES += [
        Case(f"batch_norm {list(size)}", forward(batch_norm, size, *parameters), 1.0),
        Case(f"batch_norm {list(size)} gradient", gradient(batch_norm, size, *parameters), 1.0),
        Case(f"batch_norm {list(size)} inference",
             forward(fixed_norm, size, *parameters, channels), 1.0),
        Case(f"group_norm {list(size)}", forward(group_norm, size, *parameters), 1.0),
    ]  # fmt: skip
CASES += [
    Case("small sum [64, 64]", forward(SIMPLE["sum"], (64, 64))),
    Case("small softmax [8, 16]", forward(softmax, (8, 16))),
    Case("small softmax [64, 64]", forward(softmax, (64, 64))),
    Case("small layer_norm [32, 64]", forward(layer_norm, (32, 64), (64,), (64,))),
    Case("small batch_norm [32, 16]", forward(batch_norm, (32, 16), (16,), (16,))),
    Case("small cross_entropy [32, 10]",
         forward(cross_entropy, (32, 10), {"count": 32, "below": 10})),
]  # fmt: skip

if __name__ == "__main__":
    run("Reductions and rows", CASES, threads=2)
