"""Functions of `nn.functional` that torch records as what they are made of, in its order."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau.jit.trace.recipes import program, tuple_of


@program("nn.functional.normalize")
def _normalize(
    input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Any = None
) -> Any:
    denom = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / denom


@program("nn.functional.local_response_norm")
def _local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75,
                         k: float = 1.0) -> Any:  # fmt: skip
    square = input.mul(input)
    before, behind = size // 2, (size - 1) // 2
    if input.dim() == 3:
        padded = ops.nn.functional.pad(square.unsqueeze(1), (0, 0, before, behind))
        mean = ops.nn.functional.avg_pool2d(padded, (size, 1), stride=1).squeeze(1)
    else:
        sizes = input.shape
        square = square.view(sizes[0], 1, sizes[1], sizes[2], -1)
        padded = ops.nn.functional.pad(square, (0, 0, 0, 0, before, behind))
        mean = ops.nn.functional.avg_pool3d(padded, (size, 1, 1), stride=1).squeeze(1)
        mean = mean.view(sizes)
    return input / mean.mul(alpha).add(k).pow(beta)


@program("nn.functional.lp_pool1d")
def _lp_pool1d(input: Any, norm_type: float, kernel_size: int, stride: Any = None,
               ceil_mode: bool = False) -> Any:  # fmt: skip
    mean = ops.nn.functional.avg_pool1d(
        input.pow(norm_type), kernel_size, kernel_size if stride is None else stride, 0, ceil_mode
    )
    return _rooted(mean, kernel_size, norm_type)


@program("nn.functional.lp_pool2d")
def _lp_pool2d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None,
               ceil_mode: bool = False) -> Any:  # fmt: skip
    width, height = tuple_of(kernel_size, 2)
    mean = ops.nn.functional.avg_pool2d(
        input.pow(norm_type), kernel_size, kernel_size if stride is None else stride, 0, ceil_mode
    )
    return _rooted(mean, width * height, norm_type)


@program("nn.functional.lp_pool3d")
def _lp_pool3d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None,
               ceil_mode: bool = False) -> Any:  # fmt: skip
    width, height, depth = tuple_of(kernel_size, 3)
    mean = ops.nn.functional.avg_pool3d(
        input.pow(norm_type), kernel_size, kernel_size if stride is None else stride, 0, ceil_mode
    )
    return _rooted(mean, width * height * depth, norm_type)


def _rooted(mean: Any, count: int, norm_type: float) -> Any:
    """The mean of powers as the root of their sum; negative sums stay negative."""
    positive = ops.nn.functional.relu(mean.abs())
    return (mean.sign() * positive).mul(count).pow(1.0 / norm_type)
