"""Pruning: parts of parameters are held at 0 by masks.

A pruned `weight` is `weight_mask * weight_orig`, computed before every forward; `weight_orig` is
the parameter, `weight_mask` a buffer. `remove` makes the zeros permanent.

The methods of pruning are in `methods.py`, what they share in `base.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flambeau._core.missing import lazily
from flambeau._core.nn_homes import shown_class
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn.module import Module
from flambeau.nn.utils.convert_parameters import parameters_to_vector
from flambeau.nn.utils.prune.base import BasePruningMethod, PruningContainer
from flambeau.nn.utils.prune.methods import (
    CustomFromMask,
    Identity,
    L1Unstructured,
    LnStructured,
    RandomStructured,
    RandomUnstructured,
    _compute_norm,
    _compute_nparams_toprune,
    _validate_pruning_amount,
    _validate_pruning_amount_init,
    _validate_pruning_dim,
    _validate_structured_pruning,
)

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "_compute_norm",
    "_compute_nparams_toprune",
    "_validate_pruning_amount",
    "_validate_pruning_amount_init",
    "_validate_pruning_dim",
    "_validate_structured_pruning",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


for _class in (BasePruningMethod, PruningContainer, CustomFromMask, Identity, L1Unstructured,
               LnStructured, RandomStructured, RandomUnstructured):  # fmt: skip
    _class.__module__ = __name__


def identity(module: Module, name: str) -> Module:
    """Give a parameter a mask of ones, for pruning by hand later."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune elements of a parameter at random.

    Args:
        amount: how many, as an integer or as a fraction in [0, 1].
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: float, importance_scores: Tensor | None = None
) -> Module:
    """Prune the elements of a parameter with the smallest absolute values.

    Args:
        amount: how many, as an integer or as a fraction in [0, 1].
        importance_scores: a tensor of the parameter's shape whose values are compared instead.

    >>> import flambeau as torch
    >>> layer = torch.nn.Linear(4, 2)
    >>> layer = torch.nn.utils.prune.l1_unstructured(layer, "weight", amount=3)
    >>> int(layer.weight_mask.sum())
    5
    >>> sorted(layer.state_dict())
    ['bias', 'weight_mask', 'weight_orig']
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune slices of a parameter along a dim at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Prune the slices of a parameter along a dim whose norms of order `n` are smallest."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter where a mask of its shape is 0."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as if they were one vector.

    Args:
        parameters: pairs (module, name).
        pruning_method: a class of the type "unstructured".
        importance_scores: by pair, what is compared instead of the parameter's values.
        kwargs: for the class, such as `amount`.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    importance_scores = {} if importance_scores is None else importance_scores
    if not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    scores = [
        importance_scores.get((module, name), getattr(module, name)) for module, name in parameters
    ]
    values = parameters_to_vector(scores)
    masks = [
        getattr(module, f"{name}_mask", ops.ones_like(getattr(module, name)))
        for module, name in parameters
    ]
    chain = _chain_of_one(pruning_method, kwargs)
    mask = chain.compute_mask(values, parameters_to_vector(masks))
    start = 0
    for module, name in parameters:
        tensor = getattr(module, name)
        part = mask[start : start + tensor.numel()]
        custom_from_mask(module, name, mask=part.view_as(tensor))
        start += tensor.numel()


def _chain_of_one(pruning_method: type[BasePruningMethod], kwargs: Any) -> PruningContainer:
    """A container, which leaves out what is pruned already, with one method."""
    chain = PruningContainer()
    method = pruning_method(**kwargs)
    chain._tensor_name = method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{shown_class(pruning_method)} of type {method.PRUNING_TYPE}"
        )
    chain.add_pruning_method(method)
    return chain


def remove(module: Module, name: str) -> Module:
    """Make a parameter's pruning permanent; it has its old name again and no mask."""
    hooks = module._forward_pre_hooks
    found = [key for key, hook in hooks.items()
             if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]  # fmt: skip
    if not found:
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    hooks.pop(found[0]).remove(module)
    return module


def is_pruned(module: Module) -> bool:
    """Whether any parameter of a module, or of those below it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for _, below in module.named_modules()
        for hook in below._forward_pre_hooks.values()
    )


__getattr__ = lazily(__name__)
