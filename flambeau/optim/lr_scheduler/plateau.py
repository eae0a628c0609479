"""ReduceLROnPlateau: smaller rates when a measure stops getting better."""

from __future__ import annotations

import warnings
from math import inf
from typing import Any, Literal, SupportsFloat

from flambeau.optim.lr_scheduler.base import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    checked,
    read,
    write,
)
from flambeau.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Rates times `factor` when `metrics` have not improved for more than `patience` epochs.

    Better means below the best so far in mode "min", above it in mode "max", by at least
    `threshold`: a share of the best ("rel"), or absolute ("abs"). After a reduction, `cooldown`
    epochs are not counted. No rate goes below `min_lr` (one number, or one per group), and a
    change of at most `eps` is left out.

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in (5.0, 5.0, 5.0):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.factor = factor
        self.optimizer = checked(optimizer)
        self._take_least_rates(min_lr, len(optimizer.param_groups))
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = read(optimizer, "lr")
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _take_least_rates(self, min_lr: Any, count: int) -> None:
        if not isinstance(min_lr, (list, tuple)):
            self.default_min_lr: float | None = min_lr
            self.min_lrs = [min_lr] * count
            return
        if len(min_lr) != count:
            raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
        self.default_min_lr = None
        self.min_lrs = list(min_lr)

    def _init_is_better(self, mode: str, threshold: float, threshold_mode: str) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = inf if mode == "min" else -inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def _reset(self) -> None:
        """Forget what was seen."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: SupportsFloat, epoch: int | None = None) -> None:  # type: ignore[override]
        """Look at the measure of one more epoch; call it after validation.

        `epoch`, which is deprecated, only sets `last_epoch`.
        """
        current = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        better, resting = self._is_better(current, self.best), self.in_cooldown
        if better:
            self.best = current
        if resting:
            self.cooldown_counter -= 1
        self.num_bad_epochs = 0 if better or resting else self.num_bad_epochs + 1
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.num_bad_epochs, self.cooldown_counter = 0, self.cooldown
        self._last_lr = read(self.optimizer, "lr")

    @property
    def in_cooldown(self) -> bool:
        """Whether epochs are not counted now."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        margin = self.threshold if self.mode == "max" else -self.threshold
        bar = best * (1.0 + margin) if self.threshold_mode == "rel" else best + margin
        return value > bar if self.mode == "max" else value < bar

    def _reduce_lr(self, epoch: int) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            self._extend_least_rates(len(groups))
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                write(group, "lr", new)

    def _extend_least_rates(self, count: int) -> None:
        """Groups were added meanwhile; one number for all serves them too."""
        if self.default_min_lr is None:
            raise RuntimeError(
                f"The number of param groups in the `optimizer` ({count}) differs from when "
                f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new "
                "param group being added to the optimizer. Please modify the `min_lrs` field to "
                "match the length of the `optimizer` param groups."
            )
        self.min_lrs = [self.default_min_lr] * count

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a saved state. Raises ValueError for a mode that does not exist."""
        super().load_state_dict(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)
