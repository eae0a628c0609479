"""Rates that go up and down, with momentum going the other way: CyclicLR, OneCycleLR."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import cos, floor, pi
from typing import Any, Literal

from flambeau.optim.lr_scheduler.base import (
    Rate,
    Schedule,
    check_strategy,
    checked,
    per_group,
    write,
)
from flambeau.optim.lr_scheduler.functions import saved_callable
from flambeau.optim.optimizer import Optimizer


class _Cycle(Schedule):
    """A schedule that may move momentum, or β1 where the optimizer has betas."""

    cycle_momentum: bool
    use_beta1: bool

    def _take_momentum(self, low: Any, high: Any) -> tuple[list[float], list[float]]:
        """The bounds for each group. Raises ValueError for an optimizer without momentum."""
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1 = "betas" in defaults
        lows = per_group("base_momentum", self.optimizer, low)
        highs = per_group("max_momentum", self.optimizer, high)
        return lows, highs

    def _start_momentum(self, lows: list[float], highs: list[float]) -> None:
        for group, low, high in zip(self.optimizer.param_groups, lows, highs, strict=True):
            self._set_momentum(group, high)
            group["max_momentum"] = high
            group["base_momentum"] = low

    def _set_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_Cycle):
    """Up from `base_lr` to `max_lr` in `step_size_up` steps, down in `step_size_down`; repeated.

    The height of a cycle is scaled: by 1 ("triangular"), halved with each cycle ("triangular2"),
    by gamma^step ("exp_range"), or by `scale_fn` of the cycle's number, from 1, or of the step
    (`scale_mode` "cycle" or "iterations"), which takes the place of `mode`. Momentum goes the
    other way if `cycle_momentum`. Call `step()` after every batch (Smith, 2017).

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.1, max_lr=1.0,
    ...     step_size_up=2)
    >>> for _ in range(5):
    ...     print(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    0.1
    0.55
    1.0
    0.55
    0.1
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = checked(optimizer)
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, base_lrs, strict=True):
                write(group, "lr", rate)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        self._choose_scale()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            lows, highs = self._take_momentum(base_momentum, max_momentum)
            self.base_momentums, self.max_momentums = lows, highs
            if last_epoch == -1:
                self._start_momentum(lows, highs)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    @staticmethod
    def _triangular_scale_fn(x: float) -> float:
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return 1 / (2.0 ** (x - 1))

    @staticmethod
    def _exp_range_scale_fn(gamma: float, x: float) -> float:
        return gamma**x

    def _choose_scale(self) -> None:
        if self._scale_fn_custom is not None:
            return
        scales: dict[str, tuple[Callable[..., float], Literal["cycle", "iterations"]]] = {
            "triangular": (self._triangular_scale_fn, "cycle"),
            "triangular2": (self._triangular2_scale_fn, "cycle"),
            "exp_range": (partial(self._exp_range_scale_fn, self.gamma), "iterations"),
        }
        self._scale_fn_ref, self.scale_mode = scales[self.mode]

    def scale_fn(self, x: float) -> float:
        """The height of a cycle, by its number or by the step: see `scale_mode`."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return self._scale_fn_ref(x)

    def _next_rates(self) -> list[Rate]:
        cycle = floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        if place <= self.step_ratio:
            share = place / self.step_ratio
        else:
            share = (place - 1) / (self.step_ratio - 1)
        scaled_by = cycle if self.scale_mode == "cycle" else self.last_epoch
        rates = [
            low + (high - low) * share * self.scale_fn(scaled_by)
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, bounds, strict=True):
                height = (high - low) * share * self.scale_fn(scaled_by)
                self._set_momentum(group, high - height)
        return rates

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of `scale_fn`, an object's attributes."""
        state = super().state_dict()
        state.pop("_scale_fn_ref", None)
        custom = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = None if custom is None else saved_callable(custom)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a saved state; a callable object gets back its attributes."""
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom")
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)
        super().load_state_dict(state)
        self._choose_scale()


class OneCycleLR(_Cycle):
    """Up from max_lr/div_factor to `max_lr`, then down to initial/final_div_factor, in one cycle.

    The way up takes the share `pct_start` of all steps; with `three_phase`, as many steps lead
    back to the initial rate, and the rest down. Momentum (or β1) goes the other way if
    `cycle_momentum` (Smith and Topin, 2018). Call `step()` after every batch; the cycle is
    `total_steps` long, or `epochs * steps_per_epoch`.

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=5)
    >>> for _ in range(5):
    ...     print(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    0.04
    0.9505
    0.6113
    0.1883
    0.0
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = checked(optimizer)
        self.total_steps = _cycle_length(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        self._schedule_phases = self._phases(pct_start, three_phase)
        check_strategy(anneal_strategy)
        self._anneal_func_type = anneal_strategy
        rates = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            lows, highs = self._take_momentum(base_momentum, max_momentum)
            if last_epoch == -1:
                self._start_momentum(lows, highs)
        super().__init__(optimizer, last_epoch)

    def _phases(self, pct_start: float, three_phase: bool) -> list[dict[str, Any]]:
        """Where each phase ends, and the options of a group between which it leads."""
        top = float(pct_start * self.total_steps) - 1
        rise = _phase(top, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        end = self.total_steps - 1
        if not three_phase:
            return [rise, _phase(end, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        foot = float(2 * pct_start * self.total_steps) - 2
        back = _phase(foot, "max_lr", "initial_lr", "base_momentum", "max_momentum")
        return [rise, back, _phase(end, "initial_lr", "min_lr", "max_momentum", "max_momentum")]

    def _anneal(self, start: Any, end: Any, share: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (cos(pi * share) + 1)

    def _next_rates(self) -> list[Rate]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        phase, share = self._place(step)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                start, end = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._anneal(start, end, share))
        return rates

    def _place(self, step: int) -> tuple[dict[str, Any], float]:
        """The phase that a step is in, and the share of it that has passed."""
        start = 0.0
        for phase in self._schedule_phases[:-1]:
            if step <= phase["end_step"]:
                break
            start = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        return phase, (step - start) / (phase["end_step"] - start)


def _phase(end: float, start_lr: str, end_lr: str, start: str, stop: str) -> dict[str, Any]:
    return {
        "end_step": end,
        "start_lr": start_lr,
        "end_lr": end_lr,
        "start_momentum": start,
        "end_momentum": stop,
    }


def _cycle_length(total: Any, epochs: Any, steps_per_epoch: Any) -> int:
    if total is not None:
        if total <= 0 or not isinstance(total, int):
            raise ValueError(f"Expected positive integer total_steps, but got {total}")
        return total
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    if not isinstance(epochs, int) or epochs <= 0:
        raise ValueError(f"Expected positive integer epochs, but got {epochs}")
    if not isinstance(steps_per_epoch, int) or steps_per_epoch <= 0:
        raise ValueError(f"Expected positive integer steps_per_epoch, but got {steps_per_epoch}")
    return epochs * steps_per_epoch
