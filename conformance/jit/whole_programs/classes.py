"""Classes, interfaces, enumerations."""

import enum
from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn


@torch.jit.script
class Interval:
    """Operators, properties, static methods."""

    def __init__(self, low: float, high: float):
        self.low = low
        self.high = high

    @property
    def width(self) -> float:
        return self.high - self.low

    @width.setter
    def width(self, value: float):
        self.high = self.low + value

    @staticmethod
    def unit() -> "Interval":
        return Interval(0.0, 1.0)

    def __add__(self, other: "Interval") -> "Interval":
        return Interval(self.low + other.low, self.high + other.high)

    def __mul__(self, other: "Interval") -> "Interval":
        products = [self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high]
        return Interval(min(products), max(products))

    def __contains__(self, value: float) -> bool:
        return self.low <= value and value <= self.high

    def __eq__(self, other: "Interval") -> bool:
        return self.low == other.low and self.high == other.high

    def __lt__(self, other: "Interval") -> bool:
        return self.high < other.low

    def __len__(self) -> int:
        return int(self.width)

    def __neg__(self) -> "Interval":
        return Interval(-self.high, -self.low)

    def pair(self) -> Tuple[float, float]:
        return self.low, self.high


def intervals(a: float, b: float) -> Tuple[List[Tuple[float, float]], List[bool], int, float]:
    first = Interval(a, b)
    unit = Interval.unit()
    results = [(first + unit).pair(), (first * first).pair(), (-first).pair()]
    first.width = 3.5
    first.low += 1.0
    return results, [0.5 in first, first == unit, unit < first], len(first), first.width


@torch.jit.script
class Stack:
    def __init__(self):
        self.items: List[Tensor] = []
        self.names: Dict[str, int] = {}

    def push(self, item: Tensor, name: Optional[str] = None):
        if name is not None:
            self.names[name] = len(self.items)
        self.items.append(item)

    def pop(self) -> Tensor:
        return self.items.pop()

    def __getitem__(self, name: str) -> Tensor:
        return self.items[self.names[name]]

    def __setitem__(self, name: str, value: Tensor):
        self.items[self.names[name]] = value


def calculator(program: List[str], x: Tensor) -> Tensor:
    """Evaluates an expression in reverse notation."""
    stack = Stack()
    stack.push(torch.ones(1), "one")
    for word in program:
        if word == "x":
            stack.push(x)
        elif word == "+":
            stack.push(stack.pop() + stack.pop())
        elif word == "*":
            stack.push(stack.pop() * stack.pop())
        else:
            stack.push(torch.tensor([float(word)]))
    stack["one"] = stack["one"] * 2
    return stack.pop() + stack["one"]


class Shape(enum.Enum):
    CIRCLE = 1
    SQUARE = 2


class Mode(enum.Enum):
    SUM = "sum"
    MEAN = "mean"


def areas(shapes: List[Shape], size: Tensor, mode: Mode) -> Tuple[Tensor, List[str], str]:
    parts: List[Tensor] = []
    names: List[str] = []
    for shape in shapes:
        names.append(shape.name)
        if shape == Shape.CIRCLE:
            parts.append(3.14 * size**2)
        elif shape == Shape.SQUARE:
            parts.append(size**2 * shape.value)
    stacked = torch.stack(parts)
    if mode == Mode.SUM:
        return stacked.sum(0), names, mode.value
    return stacked.mean(0), names, mode.value


@torch.jit.interface
class Activation(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass

    def scale(self, factor: float) -> float:
        pass


class Shifted(nn.Module):
    def __init__(self, shift: float):
        super().__init__()
        self.shift = shift

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x - self.shift)

    @torch.jit.export
    def scale(self, factor: float) -> float:
        return factor * self.shift


class Squared(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2) * 3)

    def forward(self, x: Tensor) -> Tensor:
        return x * x * self.weight

    @torch.jit.export
    def scale(self, factor: float) -> float:
        return factor / 2


class Chosen(nn.Module):
    """One of two modules behind an interface."""

    active: Activation

    def __init__(self, active: nn.Module):
        super().__init__()
        self.active = active
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tuple[Tensor, float]:
        return self.active.forward(self.linear(x)), self.active.scale(2.0)


def make_shifted():
    return Chosen(Shifted(0.25))


def make_squared():
    return Chosen(Squared())


class Counter(nn.Module):
    """A module that keeps an object of a script class."""

    def __init__(self):
        super().__init__()
        self.interval = Interval(0.0, 1.0)

    def forward(self, x: Tensor) -> Tuple[Tensor, float]:
        self.interval.width = self.interval.width + x.size(0)
        return x * self.interval.width, self.interval.high


PROGRAMS = {
    "intervals": (intervals, [(1.0, 2.0), (-2.0, 0.5)]),
    "calculator": (
        calculator,
        [(["x", "2", "*", "x", "+"], torch.tensor([3.0])), (["x"], torch.ones(2)), (["+"], torch.ones(1))],
    ),
    "areas": (
        areas,
        [
            ([Shape.CIRCLE, Shape.SQUARE], torch.tensor([1.0, 2.0]), Mode.SUM),
            ([Shape.SQUARE], torch.tensor([1.0, 2.0]), Mode.MEAN),
        ],
    ),
    "shifted": (make_shifted, [(torch.randn(3, 2),)]),
    "squared": (make_squared, [(torch.randn(3, 2),)]),
    "counter": (Counter, [(torch.ones(3),)]),
}
