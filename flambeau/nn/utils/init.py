"""Modules without the work of filling their parameters."""

from __future__ import annotations

import inspect
from typing import Any

from flambeau._ops.random.forked_streams import fork_rng
from flambeau._ops.table.namespace import ops
from flambeau.nn.module import Module
from flambeau.nn.parameter import is_lazy


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """Make a module whose parameters and buffers are not initialised; any values may be in them.

    No random numbers are consumed.

    Args:
        module_cls: a class of modules that takes `device`.
        args, kwargs: its arguments.

    >>> import flambeau as torch
    >>> torch.nn.utils.skip_init(torch.nn.Linear, 3, 2)
    Linear(in_features=3, out_features=2, bias=True)
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    kwargs.setdefault("device", "cpu")
    with fork_rng():
        module = _without_reset(module_cls)(*args, **kwargs)
    module.__class__ = module_cls
    for tensor in (*module.parameters(), *module.buffers()):
        if is_lazy(tensor):
            ops.empty_like(tensor)  # refuses: there is nothing to leave as it is
    return module  # type: ignore[no-any-return]


def _without_reset(module_cls: type[Module]) -> Any:
    """The class with the method that fills parameters, by either of its names, doing nothing."""
    members = {"reset_parameters": _do_nothing, "_reset_parameters": _do_nothing}
    return type(module_cls.__name__, (module_cls,), members)


def _do_nothing(self: Module) -> None:
    """Leave the parameters as they are."""
