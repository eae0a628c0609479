"""Schedules along a cosine, once or with warm restarts (Loshchilov and Hutter, 2017)."""

from __future__ import annotations

from math import cos, floor, log, pi
from typing import Any

from flambeau.optim.lr_scheduler.base import Rate, Schedule
from flambeau.optim.optimizer import Optimizer


class CosineAnnealingLR(Schedule):
    """From the initial rate to `eta_min` and back along a cosine of half period `T_max`.

    eta_min + (initial - eta_min)·(1 + cos(π·epoch/T_max))/2

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    >>> for _ in range(5):
    ...     print(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    1.0
    0.8536
    0.5
    0.1464
    0.0
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list[Rate]:
        if self._is_initial:
            return self._present()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        present = self._present()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # At the bottom the ratio below would be 0/0; the first step up is taken from there.
            rise = 1 - cos(pi / self.T_max)
            pairs = zip(self.base_lrs, present, strict=True)
            return [rate + (base - self.eta_min) * rise / 2 for base, rate in pairs]
        ratio = (1 + cos(pi * self.last_epoch / self.T_max)) / (
            1 + cos(pi * (self.last_epoch - 1) / self.T_max)
        )
        return [ratio * (rate - self.eta_min) + self.eta_min for rate in present]

    def _get_closed_form_lr(self) -> list[Rate]:
        height = 1 + cos(pi * self.last_epoch / self.T_max)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(Schedule):
    """Down from the initial rate to `eta_min` along half a cosine, again and again.

    eta_min + (initial - eta_min)·(1 + cos(π·T_cur/T_i))/2, where `T_cur` is the number of epochs
    since the last restart and `T_i` the length of this run: first `T_0`, each one `T_mult` times
    as long as the one before.

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> for _ in range(5):
    ...     print(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    1.0
    0.5
    1.0
    0.5
    1.0
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        _check_restarts(T_0, T_mult, eta_min)
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list[Rate]:
        height = 1 + cos(pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to `epoch`, which may be a fraction: call it after each batch.

        Raises:
            ValueError: `epoch` is negative.
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self._count()
        else:
            self._go_to(epoch)
        self.last_epoch = floor(epoch)
        self._set_rates(self.get_lr)

    def _count(self) -> None:
        self.T_cur += 1
        if self.T_cur >= self.T_i:
            self.T_cur %= self.T_i
            self.T_i *= self.T_mult

    def _go_to(self, epoch: float) -> None:
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i = self.T_0
            self.T_cur = epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            # Runs before number n took T_0·(T_mult^n - 1)/(T_mult - 1) epochs.
            growth = self.T_mult - 1
            run = int(log(epoch / self.T_0 * growth + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**run - 1) / growth
            self.T_i = self.T_0 * self.T_mult**run


def _check_restarts(first: Any, factor: Any, lowest: Any) -> None:
    if not isinstance(first, int) or first <= 0:
        raise ValueError(f"Expected positive integer T_0, but got {first}")
    if not isinstance(factor, int) or factor < 1:
        raise ValueError(f"Expected integer T_mult >= 1, but got {factor}")
    if not isinstance(lowest, (int, float)):
        raise ValueError(f"Expected float or int eta_min, but got {lowest} of type {type(lowest)}")
