"""An optimizer that averages the parameters now and then."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau.distributed.algorithms.model_averaging.averagers import ModelAverager
from flambeau.optim.optimizer import Optimizer


class PostLocalSGDOptimizer(Optimizer):
    """Steps as another optimizer does, and lets an averager average the parameters after each.

    Args:
        optim: the optimizer of this process. averager: such as `PeriodicModelAverager`.

    Example:
        >>> import flambeau as torch
        >>> import flambeau.distributed as dist
        >>> from flambeau.distributed.algorithms.model_averaging import averagers
        >>> dist.init_process_group("fake", rank=0, world_size=2)
        >>> weight = torch.nn.Parameter(torch.ones(1))
        >>> local = torch.optim.SGD([weight], lr=0.5)
        >>> optimizer = PostLocalSGDOptimizer(local, averagers.PeriodicModelAverager(period=2))
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> weight.item(), optimizer.state_dict()["step"]  # the backend sends nothing
        (0.25, 1)
        >>> dist.destroy_process_group()
    """

    def __init__(self, optim: Optimizer, averager: ModelAverager) -> None:
        self.optim, self.averager = optim, averager

    @property
    def param_groups(self) -> Any:  # type: ignore[override]
        """The optimizer's groups of parameters."""
        return self.optim.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        """The optimizer's state."""
        return self.optim.state

    @property
    def defaults(self) -> Any:  # type: ignore[override]
        """The optimizer's default settings."""
        return self.optim.defaults

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's state, and under "step" how many steps the averager has counted."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state over; without "step", the averager counts from 0."""
        self.optim.load_state_dict(state_dict)
        if "step" in state_dict:
            self.averager.step = state_dict["step"]
            return
        warnings.warn(
            "Loaded state dict does not contain a step counter for an averager. Setting step "
            "counter to 0.",
            stacklevel=2,
        )
        self.averager.step = 0

    def step(self) -> None:  # type: ignore[override]
        """A step of the optimizer, and an average if it is time for one."""
        self.optim.step()
        self.averager.average_parameters(params=self.param_groups)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Let the optimizer step more parameters."""
        self.optim.add_param_group(param_group)
