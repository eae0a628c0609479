"""Modules as functions of their parameters and buffers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn.module import Module
from flambeau.nn.utils.stateless import _functional_call

Tensors = dict[str, Tensor]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Tensors | Sequence[Tensors],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers in the place of its own.

    Gradients flow to the tensors given. A buffer that the module replaces is replaced in the dict;
    one that it changes in place is changed.

    Args:
        parameter_and_buffer_dicts: tensors by dotted name, in one dict or several. The module's
            own stand for those that are missing.
        args: a tuple of arguments, or a single one.
        kwargs: arguments by name.
        tie_weights: what is given for a tensor counts for all its names in the module.
        strict: all the module's names must be given, and no others.

    Raises:
        ValueError: a name in several dicts, or different tensors for names of one tensor.
        RuntimeError: `strict`, and the names do not match.

    >>> import flambeau as torch
    >>> layer = torch.nn.Linear(2, 1, bias=False)
    >>> torch.func.functional_call(layer, {"weight": torch.ones(1, 2)}, torch.tensor([3., 4.]))
    tensor([7.])
    """
    return _functional_call(
        module,
        _merged(parameter_and_buffer_dicts),
        args,
        kwargs,
        tie_weights=tie_weights,
        strict=strict,
    )


def _merged(dicts: Any) -> Tensors:
    """One dict of several, no name twice."""
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(dicts)}"
        )
    if not all(isinstance(entry, dict) for entry in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    counts = Counter(name for entry in dicts for name in entry)
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise ValueError(
            f"{repeated} appeared in multiple dictionaries; behavior of functional call is "
            "ambiguous"
        )
    return {name: tensor for entry in dicts for name, tensor in entry.items()}


def stack_module_state(models: Sequence[Module]) -> tuple[Tensors, Tensors]:
    """(parameters, buffers) of modules of one class, each stacked along a new first dim.

    Raises:
        RuntimeError: no modules, or of different classes, modes or `requires_grad`.
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return (
        _stacked([dict(model.named_parameters()) for model in models]),
        _stacked([dict(model.named_buffers()) for model in models]),
    )


def _stacked(states: Sequence[dict[str, Any]]) -> Tensors:
    result = {}
    for name in states[0]:
        tensors = [state[name] for state in states]
        wanted = {tensor.requires_grad for tensor in tensors}
        if len(wanted) > 1:
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        result[name] = ops.stack(tensors).detach().requires_grad_(wanted.pop())
    return result


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let every batch norm in a module go without running statistics, in place; returns `root`.

    A batch then is normalised by its own mean and variance, also in `eval` mode, and nothing is
    written: what functions for single examples need under `vmap`.

    >>> import flambeau as torch
    >>> net = torch.func.replace_all_batch_norm_modules_(torch.nn.BatchNorm1d(2))
    >>> net.running_mean is None, net.track_running_stats
    (True, False)
    """
    from flambeau.nn import BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm

    for module in root.modules():
        if isinstance(module, (BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm)):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
