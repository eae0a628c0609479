"""The language of `samples.py`: descriptions of arguments, and how they become tensors."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import flambeau as torch
from flambeau._ops.table.op import Op


@dataclass(frozen=True)
class Values:
    """A tensor of distinct numbers between `low` and `high`, none at a kink such as 0."""

    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0
    complex: bool = False
    grad: bool = True

    def make(self, rng: np.random.Generator, as_complex: bool) -> torch.Tensor:
        data = self._part(rng)
        if self.complex or as_complex:
            data = data + 1j * self._part(rng)
        return torch.tensor(data, requires_grad=self.grad)

    def _part(self, rng: np.random.Generator) -> np.ndarray:
        count = int(np.prod(self.shape))
        cells = rng.permutation(count) + rng.uniform(0.2, 0.45, count)
        return (self.low + (self.high - self.low) * cells / max(count, 1)).reshape(self.shape)


@dataclass(frozen=True)
class Constant:
    """A tensor of these values that takes no gradient: indices, masks, targets."""

    value: Any

    def make(self, rng: np.random.Generator, as_complex: bool) -> torch.Tensor:
        return torch.tensor(np.asarray(self.value))


def R(*shape: int, low: float = -2.0, high: float = 2.0) -> Values:
    """Real numbers."""
    return Values(shape, low, high)


def P(*shape: int) -> Values:
    """Positive numbers."""
    return Values(shape, 0.3, 3.0)


def U(*shape: int) -> Values:
    """Numbers between 0 and 1."""
    return Values(shape, 0.1, 0.9)


def C(*shape: int) -> Values:
    """Complex numbers."""
    return Values(shape, complex=True)


def N(values: Values) -> Values:
    """The same without gradient."""
    return replace(values, grad=False)


I = B = Constant  # noqa: E741


@dataclass(frozen=True)
class Sample:
    """The arguments of one call; `before` prepares them, `after` picks what is well defined."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    before: Callable[..., Any] | None = None
    after: Callable[[Any], Any] | None = None
    complex: bool = False


def call(*args: Any, before: Any = None, after: Any = None, **kwargs: Any) -> Sample:
    """A sample with keyword arguments."""
    return Sample(args, kwargs, before, after)


def seed_of(name: str, position: int) -> np.random.Generator:
    """Random numbers that belong to a row and the number of the sample."""
    return np.random.default_rng(zlib.crc32(name.encode()) + position)


def make(value: Any, rng: np.random.Generator, as_complex: bool) -> Any:
    """Tensors from descriptions, also inside lists."""
    if isinstance(value, (Values, Constant)):
        return value.make(rng, as_complex)
    if isinstance(value, list):
        return [make(item, rng, as_complex) for item in value]
    return value


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """All tensors that want a gradient."""
    if isinstance(value, torch.Tensor) and value.requires_grad:
        yield value
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


def substituted(value: Any, found: Iterator[torch.Tensor]) -> Any:
    """The same structure with other tensors in the places that want a gradient."""
    if isinstance(value, torch.Tensor) and value.requires_grad:
        return next(found)
    if isinstance(value, list):
        return [substituted(item, found) for item in value]
    return value


def differentiable_call(op: Op, function: Any, sample: Sample,
                        position: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:  # fmt: skip
    """A function of tensors alone, and the tensors, as gradcheck wants them."""
    rng = seed_of(op.full_name, position)
    args = [make(value, rng, sample.complex) for value in sample.args]
    inputs = tuple(tensors_in(args))

    def run(*tensors: torch.Tensor) -> Any:
        torch.manual_seed(0)
        if sample.before is not None:
            tensors = sample.before(*tensors)
        found = iter(tensors if isinstance(tensors, tuple) else (tensors,))
        result = function(*[substituted(value, found) for value in args], **sample.kwargs)
        return result if sample.after is None else sample.after(result)

    return run, inputs
