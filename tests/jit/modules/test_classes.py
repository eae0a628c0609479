"""Classes, enumerations, named tuples, interfaces and overloads in programs."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import pytest

import flambeau as torch
from flambeau import nn


@pytest.fixture(autouse=True)
def _deprecated() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Counter:
    """A class whose methods are compiled when it is named."""

    def __init__(self, start: int) -> None:
        self.value = start

    def add(self, by: int = 1) -> int:
        self.value += by
        return self.value

    @property
    def doubled(self) -> int:
        return self.value * 2

    @staticmethod
    def zero() -> int:
        return 0

    def __len__(self) -> int:
        return self.value


class Colour(enum.Enum):
    """An enumeration."""

    RED = 1
    BLUE = 2


class Point(NamedTuple):
    """A tuple with names."""

    x: int
    y: int = 5


@torch.jit.interface
class Doing(nn.Module):
    """What a submodule must have."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class Doubling(nn.Module):
    """It does."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Holding(nn.Module):
    """A module with a submodule of an interface, which may be exchanged."""

    inner: Doing

    def __init__(self) -> None:
        super().__init__()
        self.inner = Doubling()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner.forward(x)


def counted(n: int) -> tuple[int, int, int, int]:
    counter = Counter(n)
    counter.add()
    counter.add(by=3)
    return counter.value, counter.doubled, Counter.zero(), len(counter)


def named(c: Colour) -> int:
    if c == Colour.RED:
        return 10
    return c.value


def moved(n: int) -> Point:
    p = Point(n)
    return Point(x=p.y, y=p.x)


def test_objects_live_in_programs() -> None:
    assert torch.jit.script(counted)(4) == (8, 16, 0, 8) == counted(4)


def test_classes_that_differ_from_their_annotation_are_refused() -> None:
    class Wrong:
        def __init__(self) -> None:
            self.value = 1
            self.value = "text"  # type: ignore[assignment]

    with pytest.raises(RuntimeError, match="value"):
        torch.jit.script(Wrong)


def test_members_of_enumerations_are_compared_and_have_values() -> None:
    scripted = torch.jit.script(named)
    assert [scripted(c) for c in Colour] == [10, 2]


def test_named_tuples_come_out_with_their_names() -> None:
    result = torch.jit.script(moved)(3)
    assert (result.x, result.y) == (5, 3)


def test_a_submodule_of_an_interface_can_be_exchanged() -> None:
    scripted = torch.jit.script(Holding())
    x = torch.ones(2)
    assert scripted(x).tolist() == [2.0, 2.0]

    class Negating(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return -x

    scripted.inner = torch.jit.script(Negating())
    assert scripted(x).tolist() == [-1.0, -1.0]


@torch.jit._overload
def sized(x: int) -> int:  # noqa: D103
    ...


@torch.jit._overload
def sized(x: str) -> int:  # noqa: D103, F811
    ...


def sized(x):  # noqa: ANN001, ANN201, D103, F811
    return x + 1 if isinstance(x, int) else len(x)


def both_sizes(n: int, text: str) -> tuple[int, int]:
    return sized(n), sized(text)


def test_overloads_are_chosen_by_type() -> None:
    assert torch.jit.script(both_sizes)(4, "abc") == (5, 3)
