"""Learning-rate schedules: each sets `group["lr"]` when its `step()` is called."""

from __future__ import annotations

import types
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import cos, pi
from typing import Any, Literal

from flambeau._tensor.tensor import Tensor
from flambeau.optim.optimizer import Optimizer

ORDER_WARNING = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, "
    "you should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  "
    "Failure to do this will result in PyTorch skipping the first value of the learning rate "
    "schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)


class LRScheduler:
    """The base: counts steps and writes what `get_lr()` returns into the groups.

    `get_lr` computes the next rates from the present ones; `_closed_form(epoch)`, where a schedule
    has it, computes them for any epoch.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", _plain(group["lr"]))
        else:
            for position, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"param 'initial_lr' is not specified in param_groups[{position}] when "
                        "resuming scheduler with last_epoch >= 0.\nThis typically happens when:\n"
                    )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._get_lr_called_within_step = False
        self._is_initial = True
        self.step()
        self._is_initial = False

    def get_lr(self) -> list[float]:
        """The rates of the next epoch, one per group."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The rates set last, one per group."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch (or to `epoch`) and set the rates."""
        self._check_order()
        self._step_count += 1
        if epoch is None:
            self.last_epoch += 1
            values = self.get_lr()
        else:
            self.last_epoch = epoch
            closed = getattr(self, "_closed_form", None)
            values = self.get_lr() if closed is None else closed(epoch)
        for group, rate in zip(self.optimizer.param_groups, values, strict=True):
            _set(group, "lr", rate)
        self._last_lr = [_plain(group["lr"]) for group in self.optimizer.param_groups]

    def _check_order(self) -> None:
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(ORDER_WARNING, UserWarning, stacklevel=3)

    @property
    def _rates(self) -> list[float]:
        return [_plain(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a saved state."""
        self.__dict__.update(state_dict)


_LRScheduler = LRScheduler


def _plain(rate: Any) -> Any:
    return rate._data.item() if isinstance(rate, Tensor) else rate


def _set(group: dict[str, Any], key: str, value: Any) -> None:
    if isinstance(group[key], Tensor):
        group[key].fill_(value)
    else:
        group[key] = value


class LambdaLR(LRScheduler):
    """initial_lr · lr_lambda(epoch), with one function for all groups or a list of them."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas = _per_group(optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        pairs = zip(self.lr_lambdas, self.base_lrs, strict=True)
        return [base * function(self.last_epoch) for function, base in pairs]

    def state_dict(self) -> dict[str, Any]:
        state = {k: v for k, v in super().state_dict().items() if k != "lr_lambdas"}
        state["lr_lambdas"] = [_saved_callable(function) for function in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        saved = dict(state_dict)
        for function, values in zip(self.lr_lambdas, saved.pop("lr_lambdas"), strict=True):
            if values is not None:
                function.__dict__.update(values)
        self.__dict__.update(saved)


def _per_group(optimizer: Optimizer, functions: Any) -> list[Callable[[int], float]]:
    count = len(optimizer.param_groups)
    if not isinstance(functions, (list, tuple)):
        return [functions] * count
    if len(functions) != count:
        raise ValueError(f"Expected {count} lr_lambdas, but got {len(functions)}")
    return list(functions)


def _saved_callable(function: Any) -> Any:
    """Objects keep their attributes; plain functions cannot be saved."""
    return None if isinstance(function, types.FunctionType) else dict(function.__dict__)


class MultiplicativeLR(LambdaLR):
    """The present rate times lr_lambda(epoch)."""

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._rates
        pairs = zip(self.lr_lambdas, self._rates, strict=True)
        return [rate * function(self.last_epoch) for function, rate in pairs]


class StepLR(LRScheduler):
    """Rates times `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1,
                 last_epoch: int = -1) -> None:  # fmt: skip
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._rates
        return [rate * self.gamma for rate in self._rates]

    def _closed_form(self, epoch: int) -> list[float]:
        return [base * self.gamma ** (epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Rates times `gamma` at each of the epochs in `milestones`."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1,
                 last_epoch: int = -1) -> None:  # fmt: skip
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        times = self.milestones.get(self.last_epoch, 0)
        return [rate * self.gamma**times for rate in self._rates] if times else self._rates

    def _closed_form(self, epoch: int) -> list[float]:
        passed = bisect_right(sorted(self.milestones.elements()), epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Rates times `factor` until epoch `total_iters`."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5,
                 last_epoch: int = -1) -> None:  # fmt: skip
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.factor for rate in self._rates]
        if self.last_epoch != self.total_iters:
            return self._rates
        return [rate * (1.0 / self.factor) for rate in self._rates]

    def _closed_form(self, epoch: int) -> list[float]:
        factor = self.factor if epoch < self.total_iters else 1.0
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Rates times a factor from `start_factor` to `end_factor`, reached in `total_iters` epochs."""

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0,
                 total_iters: int = 5, last_epoch: int = -1) -> None:  # fmt: skip
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less "
                "or equal to 1."
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._rates]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates
        change = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * change
        return [rate * (1.0 + change / before) for rate in self._rates]

    def _closed_form(self, epoch: int) -> list[float]:
        change = self.end_factor - self.start_factor
        factor = self.start_factor + change * min(self.total_iters, epoch) / self.total_iters
        return [base * factor for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Rates times `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._rates
        return [rate * self.gamma for rate in self._rates]

    def _closed_form(self, epoch: int) -> list[float]:
        return [base * self.gamma**epoch for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """From the initial rate to `eta_min` and back along a cosine of half period `T_max`.

    eta_min + (initial - eta_min)·(1 + cos(π·epoch/T_max))/2   (Loshchilov and Hutter, 2017).
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0,
                 last_epoch: int = -1) -> None:  # fmt: skip
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._rates
        if self._step_count == 1 and self.last_epoch > 0:
            return self._closed_form(self.last_epoch)
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            return [
                rate + (base - self.eta_min) * (1 - cos(pi / self.T_max)) / 2
                for base, rate in zip(self.base_lrs, self._rates, strict=True)
            ]
        ratio = (1 + cos(pi * self.last_epoch / self.T_max)) / (
            1 + cos(pi * (self.last_epoch - 1) / self.T_max)
        )
        return [ratio * (rate - self.eta_min) + self.eta_min for rate in self._rates]

    def _closed_form(self, epoch: int) -> list[float]:
        height = (1 + cos(pi * epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]


class OneCycleLR(LRScheduler):
    """Up from max_lr/div_factor to `max_lr`, then down to initial/final_div_factor, in one cycle.

    Momentum (or β1) goes the other way if `cycle_momentum` (Smith and Topin, 2018). Call `step()`
    after every batch; the cycle is `total_steps` long, or `epochs * steps_per_epoch`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.total_steps = _cycle_length(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError("anneal_strategy must be one of 'cos' or 'linear', instead got "
                             f"{anneal_strategy}")  # fmt: skip
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = self._phases(pct_start, three_phase)
        rates = _listed(optimizer, max_lr, "max_lr")
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._prepare_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _phases(self, pct_start: float, three_phase: bool) -> list[dict[str, Any]]:
        up = float(pct_start * self.total_steps) - 1
        rise = {"end_step": up, "start_lr": "initial_lr", "end_lr": "max_lr",
                "start_momentum": "max_momentum", "end_momentum": "base_momentum"}  # fmt: skip
        fall = {"end_step": self.total_steps - 1, "start_lr": "max_lr", "end_lr": "min_lr",
                "start_momentum": "base_momentum", "end_momentum": "max_momentum"}  # fmt: skip
        if not three_phase:
            return [rise, fall]
        back = {"end_step": float(2 * pct_start * self.total_steps) - 2, "start_lr": "max_lr",
                "end_lr": "initial_lr", "start_momentum": "base_momentum",
                "end_momentum": "max_momentum"}  # fmt: skip
        rest = {**fall, "start_lr": "initial_lr", "start_momentum": "max_momentum"}
        return [rise, back, rest]

    def _prepare_momentum(self, optimizer: Optimizer, low: Any, high: Any, last: int) -> None:
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1 = "betas" in optimizer.defaults
        highs = _listed(optimizer, high, "max_momentum")
        lows = _listed(optimizer, low, "base_momentum")
        if last != -1:
            return
        for group, top, bottom in zip(optimizer.param_groups, highs, lows, strict=True):
            self._set_momentum(group, top)
            group["max_momentum"] = top
            group["base_momentum"] = bottom

    def _set_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def _anneal(self, start: float, end: float, share: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (cos(pi * share) + 1)

    def get_lr(self) -> list[float]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The total number of steps is "
                             f"{self.total_steps}")  # fmt: skip
        return [self._rate_at(step, group) for group in self.optimizer.param_groups]

    def _rate_at(self, step: int, group: dict[str, Any]) -> float:
        start = 0.0
        for position, phase in enumerate(self._schedule_phases):
            end = phase["end_step"]
            if step <= end or position == len(self._schedule_phases) - 1:
                break
            start = end
        share = (step - start) / (end - start)
        if self.cycle_momentum:
            momentum = self._anneal(group[phase["start_momentum"]], group[phase["end_momentum"]],
                                    share)  # fmt: skip
            self._set_momentum(group, momentum)
        return self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], share)


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


def _listed(optimizer: Optimizer, value: Any, name: str) -> Sequence[float]:
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"{name} must have the same length as optimizer.param_groups. {name} has "
                         f"{len(value)} values, param_groups has {count}.")  # fmt: skip
    return value
