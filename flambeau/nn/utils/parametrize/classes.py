"""The class that a parametrized module gets, and the values that `cached` keeps."""

from __future__ import annotations

import copy
import copyreg
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.nn.module import Module

ONLY_STATE_DICT = (
    "Serialization of parametrized modules is only supported through state_dict(). See:\n"
    "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
    "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
)


def _cache() -> Any:
    """The package, whose `_cache` and `_cache_enabled` programs set, too."""
    return sys.modules[__package__]


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once at most in the block; leaving it forgets the values.

    >>> import flambeau as torch
    >>> from flambeau.nn.utils import parametrize
    >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
    >>> layer.weight is layer.weight
    False
    >>> with parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    state = _cache()
    state._cache_enabled += 1
    try:
        yield
    finally:
        state._cache_enabled -= 1
        if not state._cache_enabled:
            state._cache = {}


def _property(name: str) -> property:
    def get(self: Any) -> Any:
        state = _cache()
        if not state._cache_enabled:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in state._cache:
            state._cache[key] = self.parametrizations[name]()
        return state._cache[key]

    def set_original(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, set_original)


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    """What `copy.deepcopy` does by itself; pickling, by which it would go, is refused."""
    known = memo.get(id(self))
    if known is not None:
        return known
    result = memo[id(self)] = object.__new__(type(self))
    vars(result).update(copy.deepcopy(vars(self), memo))
    for slot in copyreg._slotnames(type(self)):  # type: ignore[attr-defined]
        if hasattr(self, slot):
            setattr(result, slot, copy.deepcopy(getattr(self, slot), memo))
    return result


def _getstate(self: Any) -> Any:
    raise RuntimeError(ONLY_STATE_DICT)


def set_class(module: Module, base: type, names: Sequence[str]) -> None:
    """Give a module a class below `base` with a property for each name; no name: `base` itself.

    The class is a new one each time, as a copy of the module may still be of the old one.
    """
    if not names:
        module.__class__ = base
        return
    members: dict[str, Any] = {"__getstate__": _getstate}
    if not hasattr(base, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopy
    made = type(f"Parametrized{base.__name__}", (base,), members)
    for name in names:
        setattr(made, name, _property(name))
    module.__class__ = made
