"""The base of all schedules: counting epochs, writing rates, warnings, checkpoints."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable
from typing import Any, TypeAlias

from flambeau._tensor.tensor import Tensor
from flambeau.optim.optimizer import Optimizer

Rate: TypeAlias = float | Tensor
"""A learning rate or momentum: a number, or a tensor of one element that is changed in place."""

GUIDE = "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
ORDER_WARNING = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, "
    "you should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  "
    "Failure to do this will result in PyTorch skipping the first value of the learning rate "
    f"schedule. See more details at {GUIDE}"
)
OVERRIDDEN_WARNING = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
    "initialization. Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. "
    f"See more details at {GUIDE}"
)
EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available. Please open an issue if you are unable to replicate your use case: "
    "https://github.com/pytorch/pytorch/issues/new/choose."
)
LAST_LR_WARNING = (
    "To get the last learning rate computed by the scheduler, please use `get_last_lr()`."
)
NO_INITIAL_RATE = (
    "param 'initial_lr' is not specified in param_groups[{}] when resuming scheduler with "
    "last_epoch >= 0.\n"
    "This typically happens when:\n"
    "1. You're trying to resume training from a checkpoint but haven't properly loaded the "
    "optimizer state\n"
    "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
)


class _enable_get_lr_call:
    """A block in which `get_lr()` of a schedule is called by the schedule itself."""

    def __init__(self, o: LRScheduler) -> None:
        self.o = o

    def __enter__(self) -> _enable_get_lr_call:
        self.o._get_lr_called_within_step = True
        return self

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        self.o._get_lr_called_within_step = False


def _warn_get_lr_called_within_step(lr_scheduler: LRScheduler) -> None:
    """Say that `get_lr()` is not for programs, unless the schedule itself calls it."""
    if not lr_scheduler._get_lr_called_within_step:
        warnings.warn(LAST_LR_WARNING, stacklevel=2)


class LRScheduler:
    """The base: counts epochs and writes what `get_lr()` returns into the groups.

    `get_lr` computes the next rates from the present ones, so that schedules can be combined;
    `_get_closed_form_lr`, where a class has it, computes those of `last_epoch` from the initial
    rates. A rate that is a tensor is changed in place. Making a schedule sets the rates of its
    first epoch: make it before the state of the optimizer is loaded.

    Args:
        optimizer: whose groups are changed; the rates found there are kept as `initial_lr`.
        last_epoch: -1 to begin; the number of the last epoch to resume, which takes the groups'
            `initial_lr` from a loaded state (KeyError if it is missing).

    >>> import flambeau as torch
    >>> class Half(torch.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [0.5 ** self.last_epoch for _ in self.base_lrs]
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> schedule = Half(optimizer)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False
    _last_lr: list[Rate]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = checked(optimizer)
        for position, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(NO_INITIAL_RATE.format(position))
        self.base_lrs = read(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _note_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the rates of the first epoch."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list[Rate]:
        """The rates of the next epoch, one per group; every schedule defines it."""
        raise NotImplementedError

    def get_last_lr(self) -> list[Rate]:
        """The rates set last, one per group; tensors are copies."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch and set its rates; call it after `optimizer.step()`.

        With `epoch`, which is deprecated, go there, by the closed form where there is one.
        """
        self._check_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _check_order(self) -> None:
        if self._step_count != 1:
            return
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warnings.warn(OVERRIDDEN_WARNING, UserWarning, stacklevel=3)
        elif not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(ORDER_WARNING, UserWarning, stacklevel=3)

    def _update_lr(self, epoch: int | None = None) -> None:
        """Go to the next epoch or to `epoch`, without counting a step."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed_form = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        self._set_rates(closed_form or self.get_lr)

    def _set_rates(self, rates_of: Callable[[], list[Rate]]) -> None:
        with _enable_get_lr_call(self):
            rates = rates_of()
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            write(group, "lr", rate)
        self._last_lr = read(self.optimizer, "lr")

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, which has a state of its own."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a saved state."""
        self.__dict__.update(state_dict)


class _LRScheduler(LRScheduler):
    """The base under its old name, for schedules written before PyTorch 2.0."""


class Schedule(LRScheduler):
    """A schedule of this package: says `_next_rates`, and warns who asks for them from outside."""

    def get_lr(self) -> list[Rate]:
        """The rates of `last_epoch`, one per group. What was set last says `get_last_lr`."""
        if not self._get_lr_called_within_step:
            warnings.warn(LAST_LR_WARNING, UserWarning, stacklevel=2)
        return self._next_rates()

    def _next_rates(self) -> list[Rate]:
        raise NotImplementedError

    def _present(self, factor: float | None = None) -> list[Rate]:
        """The present rates; tensors are copies. With `factor`, times that."""
        if factor is None:
            return read(self.optimizer, "lr")
        return [group["lr"] * factor for group in self.optimizer.param_groups]


# ---- what schedules and SWALR do to groups


def checked(optimizer: Optimizer) -> Optimizer:
    """The optimizer itself, or a TypeError for anything else."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def copied(rate: Any) -> Any:
    """Numbers as they are, tensors cloned."""
    return rate.clone() if isinstance(rate, Tensor) else rate


def read(optimizer: Optimizer, key: str) -> list[Rate]:
    """An option of every group; tensors are copies."""
    return [copied(group[key]) for group in optimizer.param_groups]


def write(group: dict[str, Any], key: str, value: Rate) -> None:
    """Set an option of a group; a tensor stays where it is and gets the value."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value.squeeze() if isinstance(value, Tensor) else value)
    else:
        group[key] = value


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A list with one value per group, from such a list or from one value for all."""
    groups = optimizer.param_groups
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in groups]
    if len(value) != len(groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has "
            f"{len(value)} values, param_groups has {len(groups)}."
        )
    return [copied(item) for item in value]


def check_strategy(value: Any) -> None:
    """Raise ValueError for an unknown `anneal_strategy`."""
    if value not in ("cos", "linear"):
        raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {value}")


def _note_steps(optimizer: Any) -> None:
    """Let `optimizer.step` note that it was called, for the warning about the order.

    The method of this one object is replaced, as torch does: classes that override `step` are
    noticed too. The reference back is weak, so that an optimizer is freed when it is dropped.
    """
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    function = optimizer.step.__func__
    reference = weakref.ref(optimizer)

    @functools.wraps(function)
    def step(*args: Any, **kwargs: Any) -> Any:
        owner: Any = reference()
        owner._opt_called = True
        return function(owner, *args, **kwargs)

    step._wrapped_by_lr_sched = True
    optimizer.step = step
