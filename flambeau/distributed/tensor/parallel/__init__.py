"""`torch.distributed.tensor.parallel`: modules that several processes compute together."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch
from typing import Any

from flambeau._core.missing import lazily
from flambeau.distributed.device_mesh import DeviceMesh, active_mesh
from flambeau.distributed.tensor.parallel.style import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
)
from flambeau.distributed.tensor.rules.class_parts import loss_parallel
from flambeau.nn.module import Module

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
    "loss_parallel",
    "parallelize_module",
]

WHAT_PLAN = "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, {} found!"


def parallelize_module(module: Module, device_mesh: DeviceMesh | None = None,
                       parallelize_plan: Any = None, *,
                       src_data_rank: int | None = 0) -> Module:  # fmt: skip
    """Divide a module among the processes of a mesh of one dim, in place.

    Args:
        module: on all processes.
        device_mesh: the mesh; that of the `with` statement by default.
        parallelize_plan: a style, or styles of submodules by their names, in which `*` and `?`
            stand for any.
        src_data_rank: whose parameters are taken; None: everybody takes from its own.

    Raises:
        TypeError: the plan is none.
    """
    mesh = device_mesh or active_mesh()
    if parallelize_plan is None:
        warnings.warn("No parallelize_plan is provided and auto-parallel is not supported at the "
                      "moment, so this parallelize_module call will do nothing.",
                      stacklevel=2)  # fmt: skip
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(WHAT_PLAN.format(type(parallelize_plan)))
    for pattern, style in parallelize_plan.items():
        for part in _found(module, pattern.split(".") if pattern else []):
            parallelize_module(part, mesh, style, src_data_rank=src_data_rank)
    return module


def _found(module: Module, path: list[str]) -> list[Module]:
    """The submodules on a path of names or patterns."""
    if not path:
        return [module]
    children = [child for name, child in module.named_children() if fnmatch(name, path[0])]
    return [part for child in children for part in _found(child, path[1:])]


__getattr__ = lazily(__name__)
