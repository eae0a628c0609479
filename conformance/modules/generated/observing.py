"""Modules, optimizers, schedulers and scalers as data, the same for both libraries."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from conformance.autograd.generated.observing import is_tensor, plain, seen

TRACKED = ("named_modules", "param_groups", "get_last_lr", "get_scale")
"""What objects have that are looked at after every statement: modules, optimizers, schedulers,
scalers."""
MEMORY = re.compile(r"0x[0-9a-f]+")


def is_tracked(value: Any) -> bool:
    return any(hasattr(value, name) for name in TRACKED)


def state(value: Any) -> Any:
    """A value as data."""
    if hasattr(value, "named_modules"):
        return module(value)
    if hasattr(value, "get_last_lr"):
        return scheduler(value)
    if hasattr(value, "param_groups"):
        return optimizer(value)
    if hasattr(value, "get_scale"):
        return {"scale": value.get_scale(), "state": listed(value.state_dict())}
    return listed(value)


def listed(value: Any) -> Any:
    """A value in containers of any kind."""
    if _is_uninitialized(value) or is_tensor(value):
        return _parameter(value)
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, *(listed(item) for item in value)]
    if isinstance(value, dict):
        return {_key(key): listed(item) for key, item in value.items()}
    if hasattr(value, "named_modules"):
        return module(value)
    if hasattr(value, "hooks_dict_ref"):
        return "a handle"
    return plain(value)


def _key(key: Any) -> Any:
    return key if isinstance(key, (str, int)) else type(key).__name__


def _parameter(tensor: Any) -> Any:
    if _is_uninitialized(tensor):
        return [type(tensor).__name__, str(tensor.dtype).rpartition(".")[2], tensor.requires_grad]
    if repr(tensor.layout) != "torch.strided":
        return [repr(tensor.layout), _parameter(tensor.detach().to_dense())]
    return uncounted(tensor)


def uncounted(tensor: Any, *args: Any, **words: Any) -> Any:
    """A tensor without its version: how often initial values, loading and steps write to it is
    nobody's business."""
    if repr(tensor.layout) != "torch.strided":
        return _parameter(tensor)
    return replace(seen(tensor, *args, **words), version=-1)


def _is_uninitialized(tensor: Any) -> bool:
    return hasattr(type(tensor), "materialize")


# ---- modules


def module(value: Any) -> dict[str, Any]:
    """The tree of a module: classes, flags, and each tensor once with its gradient."""
    tree = {
        name: _node(inner) for name, inner in value.named_modules(remove_duplicate=False)
    }  # fmt: skip
    return {"tree": tree, "printed": _printed(value)}


def _printed(value: Any) -> str:
    """How a module prints; one whose parametrization fails does not."""
    try:
        return MEMORY.sub("0x", repr(value))
    except Exception as error:  # noqa: BLE001  # whatever a rule raises
        return f"raises {type(error).__name__}"


def _node(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"class": type(value).__name__, "training": value.training}
    found["children"] = list(value._modules)
    for kind, tensors in (("parameters", value._parameters), ("buffers", value._buffers)):
        found[kind] = _tensors(tensors)
    found["not kept"] = sorted(value._non_persistent_buffers_set)
    own = vars(value)
    found["plain"] = {name: _parameter(own[name]) for name in sorted(own) if is_tensor(own[name])}
    return found


def _tensors(tensors: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, tensor in tensors.items():
        found[name] = None if tensor is None else _parameter(tensor)
        if tensor is None or _is_uninitialized(tensor) or not tensor.is_leaf:
            continue
        found[f"{name}.grad"] = None if tensor.grad is None else _parameter(tensor.grad)
    return found


# ---- training


def optimizer(value: Any) -> dict[str, Any]:
    """The groups of an optimizer with its tensors, and its state by number."""
    numbers = {id(p): place for place, p in enumerate(_all_parameters(value))}
    groups = [
        {
            key: [numbers[id(p)] for p in item] if key == "params" else listed(item)
            for key, item in group.items()
        }
        for group in value.param_groups
    ]  # fmt: skip
    kept = {str(numbers.get(id(p), "gone")): listed(item) for p, item in value.state.items()}
    learnt = [_parameter(p) for p in _all_parameters(value)]
    return {"class": type(value).__name__, "groups": groups, "state": kept, "params": learnt}


def _all_parameters(value: Any) -> list[Any]:
    return [p for group in value.param_groups for p in group["params"]]


def scheduler(value: Any) -> dict[str, Any]:
    """What a schedule has counted, and the rates that it gave last."""
    kept = {name: listed(item) for name, item in sorted(vars(value).items()) if _is_data(item)}
    rates = listed(value.get_last_lr()) if hasattr(value, "_last_lr") else None
    return {"class": type(value).__name__, "state": kept, "rates": rates}


def _is_data(value: Any) -> bool:
    return isinstance(value, (int, float, str, list, tuple, type(None)))
