"""Weight normalization by a hook, w = g v / |v| (https://arxiv.org/abs/1602.07868).

The older form; `parametrizations.weight_norm` is the newer and reads the checkpoints of this one.
"""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter, UninitializedParameter

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]

T_module = TypeVar("T_module", bound=Module)

DEPRECATED = (
    "`torch.nn.utils.weight_norm` is deprecated in favor of "
    "`torch.nn.utils.parametrizations.weight_norm`."
)
UNINITIALIZED = (
    "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the "
    "dummy forward before applying weight normalization"
)


class WeightNorm:
    """The forward pre-hook that computes a weight from `<name>_g` and `<name>_v`.

    Args:
        name: the parameter.
        dim: the dim that keeps a norm of its own per index; None: one norm over all.
    """

    name: str
    dim: int

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """g v / |v|."""
        g = getattr(module, self.name + "_g")
        v = getattr(module, self.name + "_v")
        return ops._weight_norm(v, g, self.dim)  # type: ignore[no-any-return]

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Replace a parameter by g and v and add the hook."""
        warnings.warn(DEPRECATED, FutureWarning, stacklevel=3)
        if _keys(module, name):
            raise RuntimeError(
                f"Cannot register two weight_norm hooks on the same parameter {name}"
            )
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if isinstance(weight, UninitializedParameter):
            raise ValueError(UNINITIALIZED)
        del module._parameters[name]
        norm = ops.norm_except_dim(weight, 2, hook.dim)
        module.register_parameter(name + "_g", Parameter(norm.data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again, with its present value."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: T_module, name: str = "weight", dim: int | None = 0) -> T_module:
    """Train a weight's length g and direction v apart; deprecated.

    The parameter `name` is replaced by `<name>_g` and `<name>_v`, from which it is computed before
    every forward.

    Args:
        dim: the dim that keeps a norm of its own per index; None: one norm over all.

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # it is deprecated
    ...     layer = torch.nn.utils.weight_norm(torch.nn.Linear(2, 3))
    >>> layer.weight_g.shape, layer.weight_v.shape
    (torch.Size([3, 1]), torch.Size([3, 2]))
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: T_module, name: str = "weight") -> T_module:
    """Undo `weight_norm`; the weight keeps its present value.

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # it is deprecated
    ...     layer = torch.nn.utils.weight_norm(torch.nn.Linear(2, 3))
    >>> sorted(torch.nn.utils.remove_weight_norm(layer).state_dict())
    ['bias', 'weight']
    """
    found = _keys(module, name)
    if not found:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    module._forward_pre_hooks.pop(found[0]).remove(module)
    return module


def _keys(module: Module, name: str) -> list[int]:
    """Under which keys a module has hooks for a parameter."""
    hooks = module._forward_pre_hooks.items()
    return [key for key, hook in hooks if isinstance(hook, WeightNorm) and hook.name == name]
