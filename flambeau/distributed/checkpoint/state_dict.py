"""State dicts of models and optimizers by the names of parameters, however the model is wrapped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.distributed import collectives, objects
from flambeau.distributed.checkpoint.optimizer_state import (
    by_names,
    flat,
    into_optimizer,
    unflat,
    with_state,
)
from flambeau.distributed.world import get_rank, is_initialized, world
from flambeau.nn.module import Module
from flambeau.nn.parallel import DistributedDataParallel

Optimizers = Any
"""An optimizer, or several."""
WRAPPERS = {"module": DistributedDataParallel}
"""Modules that stand around another one, by the name under which they have it."""
COMPILED = "_orig_mod"


@dataclass
class StateDictOptions:
    """How state dicts are made and taken.

    Attributes:
        full_state_dict: whether parts of tensors are put together.
        cpu_offload: whether tensors are copied to the computer's memory; with `full_state_dict`,
            only rank 0 gets them.
        ignore_frozen_params: whether parameters that are not trained are left out.
        keep_submodule_prefixes: whether names of `submodules` begin with their place.
        strict: whether names have to be the same when a model takes them.
        broadcast_from_rank0: whether all take what rank 0 has; needs `full_state_dict`.
        flatten_optimizer_state_dict: whether the optimizer's is one flat dict.
        dsd_fqn_modifiers: without meaning here.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    chosen = options or StateDictOptions()
    if chosen.broadcast_from_rank0 and not chosen.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return chosen


def _prefixes(module: Module, raw: str = "", plain: str = "") -> Iterator[tuple[str, str]]:
    """How names begin in each module, as they are and without wrappers."""
    yield raw, plain
    for name, child in module.named_children():
        is_wrapper = isinstance(module, WRAPPERS.get(name, ())) or name == COMPILED
        inner = plain if is_wrapper else f"{plain}{name}."
        yield from _prefixes(child, f"{raw}{name}.", inner)


def _plain_names(model: Module, names: Iterable[str]) -> dict[str, str]:
    """For each name in a model's state dict, the name without wrappers."""
    plain = dict(_prefixes(model))

    def one(name: str) -> str:
        raw, dot, last = name.rpartition(".")
        return plain.get(raw + dot, raw + dot) + last

    return {name: one(name) for name in names}


def _parameters(model: Module) -> dict[str, Any]:
    """The parameters by their names without wrappers; one that is shared has several."""
    listed = list(model.named_parameters(remove_duplicate=False))
    plain = _plain_names(model, (name for name, _ in listed))
    return {plain[name]: parameter for name, parameter in listed}


def _kept_prefixes(model: Module, submodules: set[Module] | None) -> list[str] | None:
    if not submodules:
        return None
    listed = list(model.named_modules())
    plain = dict(_prefixes(model))
    return [plain[f"{name}." if name else ""] for name, module in listed if module in submodules]


def get_model_state_dict(model: Module, *, submodules: set[Module] | None = None,
                         options: StateDictOptions | None = None) -> dict[str, Any]:  # fmt: skip
    """The state dict of a model, with the names that it has without DistributedDataParallel.

    Args:
        submodules: only these; None for all.
    """
    chosen = _checked(options)
    raw = model.state_dict()
    plain = _plain_names(model, raw)
    frozen = set()
    if chosen.ignore_frozen_params:
        frozen = {name for name, each in _parameters(model).items() if not each.requires_grad}
    kept = {plain[name]: value for name, value in raw.items() if plain[name] not in frozen}
    prefixes = _kept_prefixes(model, submodules)
    if prefixes is not None:
        kept = _of_submodules(kept, prefixes, chosen.keep_submodule_prefixes)
    return _full_or_copied(kept, chosen)


def _of_submodules(state: dict[str, Any], prefixes: list[str], keep: bool) -> dict[str, Any]:
    found = {}
    for prefix in prefixes:
        for name, value in state.items():
            if name.startswith(prefix):
                found[name if keep else name.removeprefix(prefix)] = value
    return found


def _full_or_copied(value: Any, options: StateDictOptions) -> Any:
    """Parts put together, copies made, as the options say."""
    if options.full_state_dict:
        value = _mapped(value, lambda x: x.full_tensor() if hasattr(x, "full_tensor") else x)
    if options.cpu_offload:
        value = _mapped(value, lambda x: x.detach().cpu())
    if options.full_state_dict and options.cpu_offload and is_initialized() and get_rank() != 0:
        return {}
    return value


def _mapped(value: Any, function: Any) -> Any:
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, dict):
        return {key: _mapped(inner, function) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_mapped(inner, function) for inner in value)
    return value


def set_model_state_dict(model: Module, model_state_dict: dict[str, Any], *,
                         options: StateDictOptions | None = None) -> Any:  # fmt: skip
    """Let a model take a state dict whose names are those without DistributedDataParallel.

    Returns:
        The missing and the unexpected names.

    Raises:
        RuntimeError: names or sizes are others. ValueError: the options do not fit together.
    """
    chosen = _checked(options)
    raw = model.state_dict()
    plain = _plain_names(model, raw)
    given = _by_place(model, model_state_dict)
    if chosen.broadcast_from_rank0:
        given = _from_rank0({plain[name]: value for name, value in raw.items()}, given)
    wanted = dict.fromkeys(plain.values())
    renamed = {name: given[short] for name, short in plain.items() if short in given}
    renamed.update({name: value for name, value in given.items() if name not in wanted})
    return model.load_state_dict(renamed, strict=chosen.strict)


def _by_place(model: Module, given: Any) -> dict[str, Any]:
    """A state dict, also if it has one dict for each of some submodules."""
    if not any(isinstance(key, Module) for key in given):
        return dict(given)
    places = {module: name for name, module in model.named_modules()}
    plain = dict(_prefixes(model))
    found = {}
    for module, state in given.items():
        prefix = plain[f"{places[module]}." if places[module] else ""]
        found.update({prefix + name: value for name, value in state.items()})
    return found


def _from_rank0(own: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What rank 0 has, in all processes."""
    group = world()
    names: list[Any] = [list(given)]
    objects.broadcast_object_list(names, group=group, group_src=0)
    taken = {}
    for name in names[0]:
        value = given.get(name, own.get(name)) if group.rank() == 0 else own.get(name)
        if not isinstance(value, Tensor):
            listed = [value]
            objects.broadcast_object_list(listed, group=group, group_src=0)
            taken[name] = listed[0]
            continue
        copy: Any = value.detach().clone()
        collectives.broadcast(copy, group=group, group_src=0)
        taken[name] = copy
    return taken


def get_optimizer_state_dict(model: Module, optimizers: Optimizers, *,
                             submodules: set[Module] | None = None,
                             options: StateDictOptions | None = None,
                             ) -> dict[str, Any]:  # fmt: skip
    """The states of optimizers, by the names of the model's parameters instead of numbers.

    An optimizer that has made no step, and whose parameters have no gradients, makes one with
    gradients of 0 and a learning rate of 0, so that its state is there.

    Returns:
        A dict with "state" and "param_groups"; with `flatten_optimizer_state_dict`, names such as
        "state.NAME.exp_avg" and "param_groups.NAME.lr".
    """
    chosen = _checked(options)
    parameters = _parameters(model)
    prefixes = _kept_prefixes(model, submodules)
    merged: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _listed(optimizers):
        with_state(optimizer)
        own = by_names(optimizer, parameters)
        merged["state"].update(own["state"])
        merged["param_groups"] += own["param_groups"]
    if prefixes is not None:
        starts = tuple(prefixes)
        merged["state"] = {k: v for k, v in merged["state"].items() if k.startswith(starts)}
        for group in merged["param_groups"]:
            group["params"] = [name for name in group["params"] if name.startswith(starts)]
    result = flat(merged) if chosen.flatten_optimizer_state_dict else merged
    return _full_or_copied(result, chosen)  # type: ignore[no-any-return]


def _listed(optimizers: Optimizers) -> list[Any]:
    return list(optimizers) if isinstance(optimizers, Iterable) else [optimizers]


def set_optimizer_state_dict(model: Module, optimizers: Optimizers,
                             optim_state_dict: dict[str, Any], *,
                             options: StateDictOptions | None = None) -> None:  # fmt: skip
    """Let optimizers take a state dict as `get_optimizer_state_dict` makes it.

    Raises:
        RuntimeError: it is empty. ValueError: it has other groups.
    """
    chosen = _checked(options)
    given = optim_state_dict
    if chosen.broadcast_from_rank0:
        listed = [given]
        objects.broadcast_object_list(listed, group=world(), group_src=0)
        given = listed[0]
    if not given:
        raise RuntimeError(
            "The option indicates that model state_dict is required to save, or load but optim "
            f"state_dict is empty. {given}"
        )
    parameters = _parameters(model)
    for optimizer in _listed(optimizers):
        with_state(optimizer)
        nested = given if "param_groups" in given else unflat(given, optimizer, parameters)
        into_optimizer(optimizer, nested, parameters)


def get_state_dict(model: Module, optimizers: Optimizers, *,
                   submodules: set[Module] | None = None,
                   options: StateDictOptions | None = None,
                   ) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """The state dicts of a model and of its optimizers.

    >>> import flambeau as torch
    >>> from flambeau.distributed.checkpoint.state_dict import get_state_dict
    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    >>> of_model, of_optimizer = get_state_dict(model, optimizer)
    >>> list(of_model), list(of_optimizer["state"])
    (['weight', 'bias'], ['weight', 'bias'])
    """
    of_model = get_model_state_dict(model, submodules=submodules, options=options)
    of_optimizers = get_optimizer_state_dict(
        model, optimizers, submodules=submodules, options=options
    )
    return of_model, of_optimizers


def set_state_dict(model: Module, optimizers: Optimizers, *, model_state_dict: dict[str, Any],
                   optim_state_dict: dict[str, Any],
                   options: StateDictOptions | None = None) -> Any:  # fmt: skip
    """Let a model and its optimizers take state dicts as `get_state_dict` makes them.

    Returns:
        The missing and the unexpected names of the model.
    """
    if _listed(optimizers):
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
