"""L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.autograd.grad_mode import enable_grad, no_grad
from flambeau.optim.formulas import Group, State, as_real, check_range, check_rate, number
from flambeau.optim.line_search import LineSearch, Point
from flambeau.optim.optimizer import Optimizer

LEAST_CURVATURE = 1e-10
"""Changes of the gradient that point less along the step say nothing about curvature."""


class LBFGS(Optimizer):
    """p ← p + t·d with d = -H·g, where H, the inverse of the curvature, is made of the last
    changes of p and g (Nocedal, 1980; Nocedal and Wright, 2006, algorithm 7.4).

    A step is up to `max_iter` such moves, each of length `lr`, or with
    `line_search_fn="strong_wolfe"` of a length that is searched; `closure` is called each time.
    There is one group, and all parameters count as one vector: its state is that of the first.
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
        check_range(lr >= 0.0, f"Invalid learning rate: {lr}")
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
            "history_size": history_size, "line_search_fn": line_search_fn,
        })  # fmt: skip
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Move several times; returns what `closure` returned first."""
        return super().step(closure)

    @no_grad()
    def _run(self, closure: Any) -> Any:
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


class Flat:
    """Parameters seen as one vector."""

    def __init__(self, parameters: list[Any]) -> None:
        self.parameters = parameters

    def grad(self) -> Any:
        """The gradients in one vector; zeros where there is none."""
        from flambeau._ops.namespace import ops

        grads = [ops.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        return ops.cat([as_real(grad).reshape(-1) for grad in grads])

    def move(self, length: float, direction: Any) -> None:
        """Add a multiple of a vector to the parameters."""
        offset = 0
        for parameter in map(as_real, self.parameters):
            piece = direction[offset : offset + parameter.numel()]
            parameter.add_(piece.view_as(parameter), alpha=length)
            offset += parameter.numel()

    def copy(self) -> list[Any]:
        """The values, to `restore` later."""
        return [parameter.clone() for parameter in self.parameters]

    def restore(self, values: list[Any]) -> None:
        """Set the values."""
        for parameter, value in zip(self.parameters, values, strict=True):
            parameter.copy_(value)


class Run:
    """The moves of one step. What outlives it is in `state`, under torch's names."""

    def __init__(self, flat: Flat, closure: Any, group: Group, state: State) -> None:
        self.flat = flat
        self.closure = closure
        self.group = group
        self.state = state
        self.grad = flat.grad()
        self.evaluations = 1

    def is_flat(self) -> bool:
        """Whether the gradient is as good as zero."""
        return bool(self.grad.abs().max() <= self.group["tolerance_grad"])

    def go(self, loss: float) -> None:
        """Move until there is no progress or the limits are reached."""
        group, state = self.group, self.state
        for move in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction()
            self._remember(direction, loss)
            slope = float(self.grad.dot(direction))
            if slope > -group["tolerance_change"]:
                break
            before = loss
            loss = self._move(Point(0.0, loss, self.grad, slope), direction, move)
            if self._is_done(move) or abs(loss - before) < group["tolerance_change"]:
                break

    def _direction(self) -> Any:
        """-H·g; in the very first move H is 1."""
        state = self.state
        if state["n_iter"] > 1:
            self._learn()
            return two_loops(self.grad, state, self.group["history_size"])
        state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
        return -self.grad

    def _learn(self) -> None:
        """Take the last move and the change of the gradient into the history."""
        state = self.state
        change = self.grad - state["prev_flat_grad"]
        move = state["d"] * state["t"]
        curvature = change.dot(move)
        if curvature <= LEAST_CURVATURE:
            return
        history = (state["old_dirs"], state["old_stps"], state["ro"])
        for values, new in zip(history, (change, move, 1 / curvature), strict=True):
            if len(values) == self.group["history_size"]:
                values.pop(0)
            values.append(new)
        state["H_diag"] = curvature / change.dot(change)

    def _remember(self, direction: Any, loss: float) -> None:
        """Note where this move begins, and the length it would have without a search."""
        length = number(self.group["lr"])
        if self.state["n_iter"] == 1:
            length *= min(1.0, 1.0 / float(self.grad.abs().sum()))
        self.state.update(d=direction, t=length, prev_flat_grad=self.grad, prev_loss=loss)

    def _move(self, start: Point, direction: Any, move: int) -> float:
        """Move the parameters; returns the new loss, or the old one after the last move."""
        if self.group["line_search_fn"] is not None:
            return self._searched_move(start, direction)
        self.flat.move(self.state["t"], direction)
        if move == self.group["max_iter"]:
            return start.loss  # nobody asks for the loss any more
        return self._evaluate(direction, self.state["t"]).loss

    def _searched_move(self, start: Point, direction: Any) -> float:
        if self.group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        values = self.flat.copy()

        def trial(length: float) -> Point:
            self.flat.move(length, direction)
            point = self._evaluate(direction, length)
            self.flat.restore(values)
            return point

        limit = self.group["max_eval"] - self.evaluations
        tolerance = self.group["tolerance_change"] / float(direction.abs().max())
        best = LineSearch(trial, start, limit, tolerance).run(self.state["t"])
        self.state["t"], self.grad = best.step, best.grad
        self.flat.move(best.step, direction)
        return best.loss

    def _evaluate(self, direction: Any, length: float) -> Point:
        """Call the closure where the parameters are."""
        loss = number(self.closure())
        self.evaluations += 1
        self.state["func_evals"] += 1
        self.grad = self.flat.grad()
        return Point(length, loss, self.grad, float(self.grad.dot(direction)))

    def _is_done(self, move: int) -> bool:
        group, state = self.group, self.state
        if move == group["max_iter"] or self.evaluations >= group["max_eval"] or self.is_flat():
            return True
        return bool((state["d"] * state["t"]).abs().max() <= group["tolerance_change"])


def two_loops(grad: Any, state: State, history_size: int) -> Any:
    """-H·g from the history (Nocedal and Wright, algorithm 7.4)."""
    changes, moves, inverses = state["old_dirs"], state["old_stps"], state["ro"]
    weights = state.setdefault("al", [None] * history_size)
    direction = -grad
    for i in reversed(range(len(moves))):
        weights[i] = moves[i].dot(direction) * inverses[i]
        direction -= weights[i] * changes[i]
    direction *= state["H_diag"]
    for i in range(len(moves)):
        direction += (weights[i] - changes[i].dot(direction) * inverses[i]) * moves[i]
    return direction
