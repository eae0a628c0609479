"""The search for a step length that satisfies the strong Wolfe conditions.

Nocedal and Wright, Numerical Optimization (2006), algorithms 3.5 and 3.6: go on until an interval
must hold such a step, then shrink the interval. Trials are minima of cubics (equation 3.59).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9


@dataclass(frozen=True, slots=True)
class Point:
    """A trial: the step length, and the loss, the gradient and its slope along the direction.

    Lengths and slopes are numbers of the parameters' type where they were computed of gradients.
    """

    step: Any
    loss: float
    grad: Any
    slope: Any


class LineSearch:
    """One search from `start`; `evaluate` gives the Point of a step length.

    An interval is not worth shrinking if the direction, whose largest element is `reach`, moves
    no element by `tolerance` in it.
    """

    def __init__(self, evaluate: Callable[[Any], Point], start: Point, limit: int,
                 tolerance: float, reach: Any = 1.0) -> None:  # fmt: skip
        self.evaluate = evaluate
        self.start = start
        self.limit = limit
        self.tolerance = tolerance
        self.reach = reach
        self.trials = 0

    def run(self, step: Any) -> Point:
        """The best step length found, beginning with `step`."""
        point = self.evaluate(step)
        previous = self.start
        while self.trials < self.limit:
            if self._overshot(point, previous):
                return self._shrink(previous, point)
            if self._flat(point):
                return point
            if point.slope >= 0:
                return self._shrink(previous, point)
            shortest = point.step + 0.01 * (point.step - previous.step)
            longer = cubic_minimum(previous, point, (shortest, 10 * point.step))
            previous, point = point, self.evaluate(longer)
            self.trials += 1
        return min(self.start, point, key=lambda end: end.loss)

    def _overshot(self, point: Point, previous: Point) -> bool:
        return self._too_high(point) or (self.trials > 1 and point.loss >= previous.loss)

    def _too_high(self, point: Point) -> bool:
        """Whether the loss falls short of the sufficient decrease (Armijo's condition)."""
        allowed = self.start.loss + SUFFICIENT_DECREASE * point.step * self.start.slope
        return point.loss > allowed

    def _flat(self, point: Point) -> bool:
        """Whether the slope is small enough (the curvature condition)."""
        return abs(point.slope) <= -CURVATURE * self.start.slope

    def _shrink(self, first: Point, second: Point) -> Point:
        """Shrink the interval between two points until one of them will do."""
        ends = [first, second]
        low = _lower(ends)
        stalled = False
        while self.trials < self.limit:
            if abs(second.step - first.step) * self.reach < self.tolerance:
                break
            trial, stalled = off_the_ends(cubic_minimum(first, second), first, second, stalled)
            point = self.evaluate(trial)
            self.trials += 1
            if self._too_high(point) or point.loss >= ends[low].loss:
                ends[1 - low] = point
                low = _lower(ends)
            else:
                if self._flat(point):
                    return point
                if point.slope * (ends[1 - low].step - ends[low].step) >= 0:
                    ends[1 - low] = ends[low]
                ends[low] = point
            first, second = ends
        return ends[low]


def _lower(ends: list[Point]) -> int:
    """Which of two points has the lower loss: the first if both are as low."""
    return 0 if ends[0].loss <= ends[1].loss else 1


def cubic_minimum(a: Point, b: Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """Where the cubic through two points with their slopes is least, within the bounds."""
    left, right = (a, b) if a.step <= b.step else (b, a)
    least, most = bounds or (left.step, right.step)
    mean = left.slope + right.slope - 3 * (left.loss - right.loss) / (left.step - right.step)
    square = mean**2 - left.slope * right.slope
    if square < 0:
        return (least + most) / 2
    root = sqrt(square)
    share = (right.slope + root - mean) / (right.slope - left.slope + 2 * root)
    return min(max(right.step - (right.step - left.step) * share, least), most)


def off_the_ends(trial: Any, low: Point, high: Point, stalled: bool) -> tuple[Any, bool]:
    """Keep trials from sticking to an end: the second close one moves in by a tenth."""
    left, right = sorted((low.step, high.step))
    margin = 0.1 * (right - left)
    if min(right - trial, trial - left) >= margin:
        return trial, False
    if not stalled and left < trial < right:
        return trial, True
    if abs(trial - right) < abs(trial - left):
        return right - margin, False
    return left + margin, False
