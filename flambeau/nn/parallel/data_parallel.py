"""The batch of a module split over GPUs. Without GPUs the module runs as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NoReturn, TypeVar

from flambeau.autograd.grad_mode import is_grad_enabled
from flambeau.nn.module import Module
from flambeau.nn.parallel.parallel_apply import parallel_apply
from flambeau.nn.parallel.replicate import replicate
from flambeau.nn.parallel.scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]

M = TypeVar("M", bound=Module)


class DataParallel(Module, Generic[M]):
    """Runs a module with the batch split over the GPUs; where there are none, just runs it.

    The module is the child `module`, so that names in the `state_dict` start with "module.".

    Args:
        device_ids, output_device, dim: unused without GPUs.

    >>> import flambeau as torch
    >>> model = torch.nn.DataParallel(torch.nn.Linear(2, 1))
    >>> model(torch.ones(4, 2)).shape, list(model.state_dict())
    (torch.Size([4, 1]), ['module.weight', 'module.bias'])
    """

    module: M

    def __init__(
        self,
        module: M,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)

    def replicate(self, module: M, device_ids: Sequence[Any]) -> list[M]:
        """Copies of the module; see `torch.nn.parallel.replicate`."""
        return replicate(module, device_ids, not is_grad_enabled())

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Sequence[Any]) -> Any:
        """Arguments per device; see `torch.nn.parallel.scatter`."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas: Sequence[M], inputs: Any, kwargs: Any) -> list[Any]:
        """Outputs per device; see `torch.nn.parallel.parallel_apply`."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """The outputs as one; see `torch.nn.parallel.gather`."""
        return gather(outputs, output_device, dim=self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> NoReturn:
    """Run a module with the batch split over the GPUs. Raises RuntimeError, as there are none."""
    raise RuntimeError("device type could not be determined")
