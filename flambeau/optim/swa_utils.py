"""Averages of weights along training: stochastic weight averaging, moving averages.

Izmailov et al., 2018 (SWA); Polyak and Juditsky, 1992 (averaging).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from math import cos, pi
from typing import Any, Literal, TypeAlias

from flambeau import nn
from flambeau._core import dtype as dt
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.nn import Module
from flambeau.optim.averaging import approach
from flambeau.optim.lr_scheduler import LRScheduler  # noqa: F401 - torch has it here too
from flambeau.optim.lr_scheduler.base import Rate, Schedule, check_strategy, per_group
from flambeau.optim.optimizer import Optimizer

__all__ = [
    "AveragedModel", "update_bn", "SWALR", "get_ema_multi_avg_fn", "get_swa_multi_avg_fn",
    "get_ema_avg_fn", "get_swa_avg_fn",
]  # fmt: skip

Tensors: TypeAlias = tuple[Tensor, ...] | list[Tensor]
Average: TypeAlias = Callable[[Tensor, Tensor, Tensor | int], Tensor]
"""(average, current, number averaged so far) to the next average."""
Averages: TypeAlias = Callable[[Tensors, Tensors, Tensor | int], None]
"""The same for lists of tensors of one dtype and device, in place."""


BESIDE_OTHERS = (dt.float32, dt.float64, dt.bfloat16)
"""Types that a tensor may have in a list beside one of another type."""


# ---- ways to average


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """The moving average decay·average + (1 - decay)·current, for lists and in place.

    Raises:
        ValueError: `decay` is not in [0, 1].

    >>> import flambeau as torch
    >>> kept = [torch.tensor([1.0])]
    >>> torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)(kept, [torch.tensor([2.0])], 1)
    >>> kept
    [tensor([1.1000])]
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(
        ema_param_list: Tensors, current_param_list: Tensors, num_averaged: Tensor | int
    ) -> None:
        share = 1 - decay
        if _is_continuous(ema_param_list[0]):
            return approach(ema_param_list, current_param_list, share)
        for average, current in zip(ema_param_list, current_param_list, strict=True):
            average.copy_(average * decay + current * share)
        return None

    return ema_update


def get_swa_multi_avg_fn() -> Averages:
    """The mean of all weights so far, for lists of floats or complex numbers and in place.

    >>> import flambeau as torch
    >>> kept = [torch.tensor([1.0])]
    >>> torch.optim.swa_utils.get_swa_multi_avg_fn()(kept, [torch.tensor([4.0])], 2)
    >>> kept
    [tensor([2.])]
    """

    @no_grad()
    def swa_update(
        averaged_param_list: Tensors, current_param_list: Tensors, num_averaged: Tensor | int
    ) -> None:
        if _is_continuous(averaged_param_list[0]):
            approach(averaged_param_list, current_param_list, float(1 / (num_averaged + 1)))
            return
        for average, current in zip(averaged_param_list, current_param_list, strict=True):
            if isinstance(num_averaged, Tensor):
                average.addcdiv_(current - average, num_averaged + 1)
            else:
                average.add_(current - average, alpha=1.0 / (num_averaged + 1))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The moving average decay·average + (1 - decay)·current.

    Raises:
        ValueError: `decay` is not in [0, 1].

    >>> import flambeau as torch
    >>> average = torch.optim.swa_utils.get_ema_avg_fn(0.9)
    >>> average(torch.tensor([1.0]), torch.tensor([2.0]), 1)
    tensor([1.1000])
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Tensor | int) -> Any:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Average:
    """The mean of all weights so far.

    >>> import flambeau as torch
    >>> average = torch.optim.swa_utils.get_swa_avg_fn()
    >>> average(torch.tensor([1.0]), torch.tensor([4.0]), 2)
    tensor([2.])
    """

    @no_grad()
    def swa_update(
        averaged_param: Tensor, current_param: Tensor, num_averaged: Tensor | int
    ) -> Any:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def _beside(average: Tensor, current: Tensor) -> Tensor:
    """`current` on the device of its average."""
    if current.device is average.device:
        return current
    return current.to(average.device)  # type: ignore[attr-defined,no-any-return]


def _is_continuous(tensor: Tensor) -> bool:
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


# ---- models


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's.

    It is called with the shapes of the model.

    `update_parameters(model)` takes in the present parameters: the first time they are copied,
    then averaged, equally by default. Buffers are copied, or with `use_buffers` averaged too; else
    the statistics of batch norms are to be found anew by `update_bn`.

    Args:
        model: is copied, to `device` if that is given.
        avg_fn: (average, current, n_averaged) to the next average of one parameter.
        multi_avg_fn: the same in place for lists of parameters of one dtype and device; only one
            of the two may be given.

    >>> from flambeau.optim.swa_utils import AveragedModel
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> averaged = AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = torch.nn.init.constant_(model.weight, value)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item(), averaged.n_averaged
    (3.0, tensor(3))
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        copied = deepcopy(model)
        self.module = copied if device is None else copied.to(device)
        self.register_buffer("n_averaged", ops.zeros((), dtype=dt.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged copy computes."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the present parameters of `model` into the averages."""
        # Parameters may be fewer on one side (tied weights); buffers have to match.
        pairs = zip(self._taken(self.module), self._taken(model), strict=False)
        present = [(mine.detach(), _beside(mine, theirs.detach())) for mine, theirs in pairs]
        if self.n_averaged.item() == 0:
            for average, current in present:
                average.copy_(current)
        elif self.multi_avg_fn is not None:
            self._average_lists(self.multi_avg_fn, present)
        else:
            self._average_each(present)
        if not self.use_buffers:
            for mine, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.detach().copy_(_beside(mine, theirs.detach()))
        self.n_averaged.add_(1)

    def _taken(self, module: Module) -> Iterable[Tensor]:
        """What is averaged of a module."""
        if self.use_buffers:
            return chain(module.parameters(), module.buffers())
        return module.parameters()

    def _average_each(self, present: list[tuple[Tensor, Tensor]]) -> None:
        if self.avg_fn is None:
            present = [pair for group in _by_type(present) for pair in group]
            average_of, count = get_swa_avg_fn(), self.n_averaged.item()
        else:
            average_of, count = self.avg_fn, self.n_averaged
        for average, current in present:
            own = count.to(average.device) if isinstance(count, Tensor) else count
            average.copy_(average_of(average, current, own))

    def _average_lists(self, update: Averages, present: list[tuple[Tensor, Tensor]]) -> None:
        """Hand over tensors of one device and dtype at a time."""
        for group in _by_type(present):
            averages, currents = map(list, zip(*group, strict=True))
            update(averages, currents, self.n_averaged.to(averages[0].device))


def _by_type(present: list[tuple[Tensor, Tensor]]) -> list[list[tuple[Tensor, Tensor]]]:
    """Averages of one type together; torch comes to the type that it saw last first, which shows
    where one of them is refused."""
    groups: dict[Any, list[tuple[Tensor, Tensor]]] = {}
    for average, current in present:
        if current.dtype is not average.dtype and current.dtype not in BESIDE_OTHERS:
            raise RuntimeError(
                "Tensors of the same index must be on the same device and the same dtype except "
                "`step` tensors that can be CPU and float32/64, and optimizer states that can be "
                "bfloat16 for mixed-precision training"
            )
        groups.setdefault((average.device, average.dtype), []).append((average, current))
    return list(groups.values())[::-1]


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Find the statistics of a model's batch norms anew, as means over the batches of `loader`.

    Batches are inputs, or lists and tuples whose first item is the input; they are moved to
    `device` if that is given. A model without batch norms is not run.

    >>> import flambeau as torch
    >>> model = torch.nn.BatchNorm1d(2)
    >>> torch.optim.swa_utils.update_bn([torch.tensor([[1., 5.], [3., 7.]])], model)
    >>> model.running_mean
    tensor([2., 6.])
    """
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    before = [norm.momentum for norm in norms]
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all batches
    for batch in loader:
        inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(inputs if device is None else inputs.to(device))
    for norm, momentum in zip(norms, before, strict=True):
        norm.momentum = momentum
    model.train(was_training)


# ---- rates


class SWALR(Schedule):
    """From the present rates to `swa_lr` in `anneal_epochs` steps, then constant.

    `swa_lr` is one number or one per group. Between them it goes along a straight line ("linear")
    or half a cosine ("cos"). It is made when averaging begins, after another schedule has run.

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> schedule = torch.optim.swa_utils.SWALR(optimizer, 0.5, 2, "linear")
    >>> rates = []
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    ...     rates += schedule.get_last_lr()
    >>> rates
    [0.75, 0.5, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = per_group("swa_lr", optimizer, swa_lr)
        check_strategy(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = rate
        self._set_anneal_func(anneal_strategy)
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _linear_anneal(t: float) -> float:
        return t

    @staticmethod
    def _cosine_anneal(t: float) -> float:
        return (1 - cos(pi * t)) / 2

    def _set_anneal_func(self, anneal_strategy: Literal["cos", "linear"]) -> None:
        self._anneal_strategy = anneal_strategy
        is_cosine = anneal_strategy == "cos"
        self.anneal_func = self._cosine_anneal if is_cosine else self._linear_anneal

    def _next_rates(self) -> list[Rate]:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        return [self._moved(group, before, now) for group in self.optimizer.param_groups]

    def _share(self, step: int) -> float:
        """How far the rates have gone after `step` steps, from 0 to 1."""
        return self.anneal_func(max(0, min(1, step / max(1, self.anneal_epochs))))

    @staticmethod
    def _moved(group: dict[str, Any], before: float, now: float) -> Rate:
        """Solve the present rate for the one at the start, and go on from there."""
        rate, goal = group["lr"], group["swa_lr"]
        start = goal if before == 1 else (rate - before * goal) / (1 - before)
        return goal * now + start * (1 - now)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and the function, which `_anneal_strategy` names."""
        state = super().state_dict()
        del state["anneal_func"]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a saved state."""
        super().load_state_dict(state_dict)
        self._set_anneal_func(self._anneal_strategy)
