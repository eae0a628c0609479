"""Schedules that ask functions of the user's: LambdaLR, MultiplicativeLR."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from flambeau.optim.lr_scheduler.base import Rate, Schedule
from flambeau.optim.optimizer import Optimizer


def saved_callable(function: Any) -> dict[str, Any] | None:
    """What a checkpoint keeps of a callable: the attributes of an object, of a function nothing."""
    return None if isinstance(function, types.FunctionType) else dict(function.__dict__)


class _ByFunction(Schedule):
    """One function for all groups, or a list with one for each."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        count = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            lr_lambda = [lr_lambda] * count
        if len(lr_lambda) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
        self.lr_lambdas: list[Callable[[int], float]] = list(lr_lambda)
        self._check_functions()
        super().__init__(optimizer, last_epoch)

    def _check_functions(self) -> None:
        """Refuse what cannot be called."""

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; callable objects by their attributes, functions as None."""
        state = super().state_dict()
        del state["lr_lambdas"]
        state["lr_lambdas"] = [saved_callable(function) for function in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a saved state; callable objects get back their attributes."""
        state = dict(state_dict)
        for position, attributes in enumerate(state.pop("lr_lambdas")):
            if attributes is not None:
                self.lr_lambdas[position].__dict__.update(attributes)
        super().load_state_dict(state)


class LambdaLR(_ByFunction):
    """initial_lr · lr_lambda(epoch), with one function for all groups or a list of them.

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> for _ in range(5):
    ...     print(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    1.0
    0.5
    0.3333
    0.25
    0.2
    """

    def _next_rates(self) -> list[Rate]:
        pairs = zip(self.lr_lambdas, self.base_lrs, strict=True)
        return [base * function(self.last_epoch) for function, base in pairs]


class MultiplicativeLR(_ByFunction):
    """The present rate times lr_lambda(epoch).

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> for _ in range(5):
    ...     print(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    1.0
    0.5
    0.25
    0.125
    0.0625
    """

    def _check_functions(self) -> None:
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(
                    f"lr_lambda should be a function, but got {type(function).__name__}"
                )

    def _next_rates(self) -> list[Rate]:
        if self._is_initial:
            return self._present()
        pairs = zip(self.lr_lambdas, self.optimizer.param_groups, strict=True)
        return [group["lr"] * function(self.last_epoch) for function, group in pairs]
