"""Modules and hooks for the scenarios of hooks, and how their arguments are shown."""

from __future__ import annotations

from typing import Any


def module(t: Any, forward: Any, **fields: Any) -> Any:
    """A module that calls a function, or a method if it has a parameter called self."""

    class Made(t.nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return forward(*args, **kwargs)

    made = Made()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def shown(value: Any) -> Any:
    """Plain data: what a tensor is, in texts; everything else as it is, or its type's name."""
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [shown(item) for item in value]
    if isinstance(value, dict):
        return {key: shown(item) for key, item in value.items()}
    if hasattr(value, "detach"):
        numbers = [f"{number:.5g}" for number in value.detach().to_dense().reshape(-1).tolist()]
        kind = str(value.dtype).removeprefix("torch.")
        return kind, list(value.shape), numbers, value.requires_grad
    if isinstance(value, (type(None), bool, int, float, str)):
        return value
    return type(value).__name__


def tensors(value: Any) -> list[Any]:
    """The tensors in a tensor, or in tuples, lists and dicts."""
    if hasattr(value, "detach"):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (tuple, list)):
        return []
    return [part for item in value for part in tensors(item)]


def leaf(t: Any) -> Any:
    """A tensor that wants a gradient."""
    return t.tensor([1.0, -2.0, 3.0], requires_grad=True)


def hooked(t: Any, see: Any, forward: Any) -> Any:
    """A module with that forward, and a full backward hook of each kind."""
    made = module(t, forward)
    made.register_full_backward_hook(see("full"))
    made.register_full_backward_pre_hook(see("pre"))
    return made
