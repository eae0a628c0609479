"""Arguments of a call as tensors of either library: the same numbers, lying the same way."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .cases import TensorArgument

SPECIAL = (0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1.0, -1.0, 1e30, -1e-30)
LARGE = {
    "int64": [2**24 + 1, 2**53 + 1, -(2**31) - 1, 2**62], "int32": [2**24 + 1, 2**31 - 1, -7],
    "float32": [2.0**24 - 1, 3e38, -1e-38], "float64": [2.0**24 + 1, 2.0**53 - 1, 1e300],
}  # fmt: skip
WIDE = {"complex64": np.complex64, "float64": np.float64, "complex128": np.complex128}
"""Types that numbers are drawn in; the others are made from float32 and int64."""


@dataclass
class Made:
    """The arguments of one call, and the tensors to learn."""

    values: list[Any] = field(default_factory=list)
    leaves: list[Any] = field(default_factory=list)


def made(arguments: tuple[Any, ...], torch: Any) -> Made:
    """Arguments for a call."""
    found = Made()
    for argument in arguments:
        found.values.append(_value(argument, torch, found))
    return found


def _value(argument: Any, torch: Any, found: Made) -> Any:
    if isinstance(argument, TensorArgument):
        if 0 <= argument.same_as < len(found.values):
            return found.values[argument.same_as]
        return _tensor(argument, torch, found)
    if isinstance(argument, list):
        return [_value(item, torch, found) for item in argument]
    if isinstance(argument, dict):
        return {key: _value(item, torch, found) for key, item in argument.items()}
    return argument


def _tensor(argument: TensorArgument, torch: Any, found: Made) -> Any:
    tensor = laid(argument, torch).data  # no view of another tensor, however it lies
    if argument.learns == "no" or not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor
    tensor.requires_grad_()
    found.leaves.append(tensor)
    return tensor * 1 if argument.learns == "computed" else tensor


def laid(argument: TensorArgument, torch: Any) -> Any:
    """The tensor, in memory as it is asked for."""
    shape = argument.shape
    if not shape or argument.layout == "rows":
        return _typed(argument, shape, torch)
    if argument.layout == "transposed":
        turned = (*shape[:-2], shape[-1], shape[-2]) if len(shape) > 1 else shape
        base = _typed(argument, turned, torch)
        return base.transpose(-1, -2) if len(shape) > 1 else base
    if argument.layout == "sliced":
        return _typed(argument, (*shape[:-1], 2 * shape[-1]), torch)[..., ::2]
    if argument.layout == "expanded":
        return _typed(argument, (1, *shape[1:]), torch).expand(shape)
    return _typed(argument, (shape[0] + 1, *shape[1:]), torch)[1:]


def _typed(argument: TensorArgument, shape: tuple[int, ...], torch: Any) -> Any:
    tensor = torch.from_numpy(numbers(argument, shape))
    return tensor.to(getattr(torch, argument.dtype), copy=True)  # whose memory may be resized


def numbers(argument: TensorArgument, shape: tuple[int, ...]) -> np.ndarray:
    """What is in it."""
    drawn = np.random.default_rng([argument.seed, *shape])
    dtype = argument.dtype
    if argument.fill in ("ones", "zeros"):
        return np.full(shape, argument.fill == "ones")
    if argument.fill == "small":
        return drawn.integers(0, 3, shape)
    if argument.fill == "large" and dtype in LARGE:
        return drawn.choice(np.array(LARGE[dtype]), shape)
    if dtype == "bool":
        return drawn.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        return drawn.integers(0 if dtype == "uint8" else -5, 6, shape)
    plain = np.array(drawn.standard_normal(shape))
    if "complex" in dtype:
        plain = plain + 1j * drawn.standard_normal(shape)
    elif argument.fill == "special":
        _sprinkle(plain, argument.seed)
    return np.array(plain).astype(WIDE.get(dtype, np.float32))


def _sprinkle(plain: np.ndarray, seed: int) -> None:
    """Put special numbers among the others."""
    drawn = random.Random(seed)
    flat = plain.reshape(-1)
    for position in range(flat.size):
        if drawn.random() < 0.25:
            flat[position] = drawn.choice(SPECIAL)
