"""L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.grad_mode import enable_grad, no_grad
from flambeau.optim.flat import Flat, Vector, dot, multiply_add, total
from flambeau.optim.line_search import LineSearch, Point
from flambeau.optim.optimizer import Optimizer
from flambeau.optim.options import Group, State, check_not_negative, check_rate, number

LEAST_CURVATURE = 1e-10
"""Changes of the gradient that point less along the step say nothing about curvature."""


class LBFGS(Optimizer):
    """p ← p + t·d with d = -H·g, where H, the inverse of the curvature, is made of the last
    changes of p and g (Nocedal, 1980; Nocedal and Wright, 2006, algorithm 7.4).

    A step is up to `max_iter` such moves, each of length `lr`, or with
    `line_search_fn="strong_wolfe"` of a length that is searched; `closure` is called each time.
    There is one group, and all parameters count as one vector: its state is that of the first.

    >>> import flambeau as torch
    >>> x = torch.nn.Parameter(torch.tensor([0.0]))
    >>> optimizer = torch.optim.LBFGS([x])
    >>> def loss():
    ...     optimizer.zero_grad()
    ...     value = (x - 3).square().sum()
    ...     value.backward()
    ...     return value
    >>> _ = optimizer.step(loss)
    >>> x.detach()
    tensor([3.])
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_rate(lr)
        check_not_negative(lr=lr)
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
            "history_size": history_size, "line_search_fn": line_search_fn,
        })  # fmt: skip
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Move several times; returns what `closure` returned first."""
        if len(self.param_groups) != 1:
            raise AssertionError(
                f"Expected exactly one param_group, but got {len(self.param_groups)}"
            )
        for name in self.options:  # what was deleted from the group is an error
            self.param_groups[0][name]
        closure = enable_grad()(closure)
        parameters = self.param_groups[0]["params"]
        state = self.state[parameters[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        state["func_evals"] += 1
        run = Run(Flat(parameters), closure, self.param_groups[0], state)
        if not run.is_flat():
            run.go(number(first_loss))
        return first_loss


KEPT = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")
"""What outlives a step, in the order of torch."""


class Run:
    """The moves of one step, on arrays. What outlives it goes into `state` at the end, under
    torch's names and in torch's types: tensors of the parameters' type, of no dims where they are
    single numbers. A closure that raises leaves the counters and what lists have been given."""

    def __init__(self, flat: Flat, closure: Any, group: Group, state: State) -> None:
        self.flat = flat
        self.closure = closure
        self.group = group
        self.state = state
        self.kept: State = {name: state.get(name) for name in KEPT}
        self.grad = flat.grad()
        self.evaluations = 1

    def is_flat(self) -> bool:
        """Whether the gradient is as good as zero."""
        largest = abs(self.grad).max() if self.grad.size else wrap(self.grad).max()  # an error
        return bool(largest <= self.group["tolerance_grad"])

    def go(self, loss: float) -> None:
        """Move until there is no progress or the limits are reached."""
        group = self.group
        for move in range(1, group["max_iter"] + 1):
            self.state["n_iter"] += 1
            self.direction = self._direction()
            self._remember(loss)
            slope = dot(self.grad, self.direction)
            if slope > -group["tolerance_change"]:
                break
            before = loss
            loss = self._move(Point(0.0, loss, self.grad, slope), move)
            if self._is_done(move) or abs(loss - before) < group["tolerance_change"]:
                break
        self.state.update(self.kept)

    def _direction(self) -> Vector:
        """-H·g; in the very first move H is 1."""
        if self.state["n_iter"] > 1:
            self._learn()
            weights = self.state.setdefault("al", [None] * self.group["history_size"])
            return two_loops(self.grad, self.kept, weights)
        self.kept.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
        return -self.grad

    def _learn(self) -> None:
        """Take the last move and the change of the gradient into the history."""
        last = self.kept
        if last["prev_flat_grad"] is None:  # the first move was not made
            raise TypeError("sub(): argument 'other' (position 1) must be Tensor, not NoneType")
        change = self.grad - raw(last["prev_flat_grad"])
        move = raw(last["d"]) * raw(last["t"])
        curvature = dot(change, move)
        if curvature <= LEAST_CURVATURE:
            return
        inverse = self.grad.dtype.type(1) / curvature
        history = (last["old_dirs"], last["old_stps"], last["ro"])
        for values, new in zip(history, (change, move, inverse), strict=True):
            if len(values) == self.group["history_size"]:
                values.pop(0)
            values.append(kept(new))
        last["H_diag"] = kept(curvature / dot(change, change))

    def _remember(self, loss: float) -> None:
        """Note where this move begins, and the length it would have without a search."""
        lr = self.group["lr"]
        share: Any = 1
        if self.state["n_iter"] == 1:
            share = min(1.0, 1.0 / total(abs(self.grad)))
        self.length = share * number(lr)
        length = lr * float(share) if isinstance(lr, Tensor) else self.length
        self.kept.update(d=kept(self.direction), t=kept(length), prev_loss=loss)
        before = self.kept["prev_flat_grad"]
        if before is None or before.dtype != kept(self.grad).dtype:
            self.kept["prev_flat_grad"] = kept(self.grad.copy())
        else:  # in its memory, which saved states may hold
            before.copy_(kept(self.grad))

    def _move(self, start: Point, move: int) -> float:
        """Move the parameters; returns the new loss, or the old one after the last move."""
        if self.group["line_search_fn"] is not None:
            return self._searched_move(start)
        self.flat.move(self.length, self.direction)
        if move == self.group["max_iter"]:
            return start.loss  # nobody asks for the loss any more
        return self._evaluate(self.length).loss

    def _searched_move(self, start: Point) -> float:
        if self.group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        values = self.flat.copy()

        def trial(length: Any) -> Point:
            self.flat.move(length, self.direction)
            point = self._evaluate(length)
            self.flat.restore(values)
            return point

        limit = self.group["max_eval"] - self.evaluations
        tolerance = self.group["tolerance_change"]
        search = LineSearch(trial, start, limit, tolerance, abs(self.direction).max())
        best = search.run(self.length)
        self.grad = best.grad
        if best.step is not self.length:
            self.length, self.kept["t"] = best.step, kept(best.step)
        self.flat.move(best.step, self.direction)
        return best.loss

    def _evaluate(self, length: Any) -> Point:
        """Call the closure where the parameters are."""
        loss = number(self.closure())
        self.evaluations += 1
        self.state["func_evals"] += 1
        self.grad = self.flat.grad()
        return Point(length, loss, self.grad, dot(self.grad, self.direction))

    def _is_done(self, move: int) -> bool:
        group = self.group
        if move == group["max_iter"] or self.evaluations >= group["max_eval"] or self.is_flat():
            return True
        return bool(abs(self.direction * self.length).max() <= group["tolerance_change"])


def two_loops(grad: Vector, state: State, weights: list[Any]) -> Vector:
    """-H·g from the history (Nocedal and Wright, algorithm 7.4); `weights` has room for it."""
    changes, moves, inverses = (
        [raw(value) for value in state[name]] for name in ("old_dirs", "old_stps", "ro")
    )
    direction = -grad
    for i in reversed(range(len(moves))):
        weight = dot(moves[i], direction) * inverses[i]
        direction = multiply_add(changes[i], -weight, direction)
        weights[i] = kept(weight)
    direction = direction * raw(state["H_diag"])
    for i in range(len(moves)):
        weight = raw(weights[i]) - dot(changes[i], direction) * inverses[i]
        direction = multiply_add(moves[i], weight, direction)
    return direction


def raw(value: Any) -> Any:
    """What is kept of a vector or a number, as NumPy's; Python's numbers as they are."""
    return value._data[()] if isinstance(value, Tensor) else value


def kept(value: Any) -> Any:
    """An array or a number of NumPy's as a tensor; Python's numbers as they are."""
    return wrap(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else value
