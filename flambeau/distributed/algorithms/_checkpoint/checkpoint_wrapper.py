"""Wrappers of modules that keep less for backward: checkpointed, or kept on the CPU.

A wrapper holds its module as `_checkpoint_wrapped_module`, and names it nowhere: state dicts and
`named_parameters()` are those of the module without the wrapper.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Any

from flambeau.autograd.saved import save_on_cpu
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter
from flambeau.utils.checkpoint import checkpoint

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(Enum):
    """The two kinds of `torch.utils.checkpoint.checkpoint`.

    >>> from flambeau.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl
    >>> [kind.name for kind in CheckpointImpl]
    ['REENTRANT', 'NO_REENTRANT']
    """

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module, ABC):
    """A module around another, which is not seen in names of parameters.

    Args:
        module: what is wrapped; attributes that the wrapper has not are the module's.
    """

    def __init__(self, module: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = module
        self._register_state_dict_hook(self._post_state_dict_hook)
        self.register_load_state_dict_pre_hook(self._pre_load_state_dict_hook)

    @abstractmethod
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the wrapped module."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: Any) -> Any:
        """The part of a wrapped Sequential or ModuleList."""
        return self._checkpoint_wrapped_module.__getitem__(key)  # type: ignore[operator]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
        """Names, without the wrapper's, and parameters."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter

    @staticmethod
    def _post_state_dict_hook(
        module: Module, state_dict: dict[str, Any], prefix: str, *args: Any
    ) -> dict[str, Any]:
        _rename(state_dict, prefix + _CHECKPOINT_PREFIX, prefix)
        return state_dict

    @staticmethod
    def _pre_load_state_dict_hook(
        module: Module, state_dict: dict[str, Any], prefix: str, *args: Any
    ) -> None:
        _rename(state_dict, prefix, prefix + _CHECKPOINT_PREFIX)


class CheckpointWrapper(ActivationWrapper):
    """A module whose results between are computed again in backward.

    Args:
        mod: the module. checkpoint_impl: the kind of checkpointing.
        checkpoint_fn: what to call as `checkpoint_fn(module, *args, **kwargs)` instead of
            `torch.utils.checkpoint.checkpoint`. checkpoint_fn_kwargs: for either.
    """

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            reentrant = checkpoint_impl == CheckpointImpl.REENTRANT
            self.checkpoint_fn: Any = functools.partial(
                checkpoint, use_reentrant=reentrant, **checkpoint_fn_kwargs
            )
        else:
            self.checkpoint_fn = functools.partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module under its checkpoint."""
        module = self._checkpoint_wrapped_module
        if self.checkpoint_impl != CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(module, *args, **kwargs)
        names = tuple(kwargs)  # reentrant checkpoints take arguments by position alone

        def by_position(*values: Any) -> Any:
            count = len(values) - len(names)
            named = dict(zip(names, values[count:], strict=True))
            return module(*values[:count], **named)

        return self.checkpoint_fn(by_position, *args, *kwargs.values())


class OffloadWrapper(ActivationWrapper):
    """A module whose results for backward are kept in pinned memory of the CPU."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module, and move what it saves."""
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> Module:
    """Wrap a module, so that backward computes its results between again.

    >>> import flambeau as torch
    >>> from flambeau.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers
    >>> layer = wrappers.checkpoint_wrapper(torch.nn.Linear(2, 3))
    >>> layer(torch.ones(1, 2)).shape, list(layer.state_dict())
    (torch.Size([1, 3]), ['weight', 'bias'])
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def offload_wrapper(module: Module) -> Module:
    """Wrap a module, so that what it saves for backward lies in the CPU's memory.

    >>> import flambeau as torch
    >>> from flambeau.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers
    >>> wrappers.offload_wrapper(torch.nn.Linear(2, 3)).in_features
    2
    """
    return OffloadWrapper(module)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True,
    auto_wrap_policy: Callable[[Module, bool, int], bool] | None = None,
) -> None:
    """Wrap the modules below a model that `check_fn` (or the policy) says yes to, in place.

    Args:
        model: is not wrapped itself. checkpoint_wrapper_fn: makes a wrapper of a module.
        auto_wrap_policy: as FSDP's, instead of `check_fn`.

    >>> import flambeau as torch
    >>> from flambeau.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    >>> wrappers.apply_activation_checkpointing(
    ...     model, check_fn=lambda layer: isinstance(layer, torch.nn.Linear))
    >>> [type(layer).__name__ for layer in model]
    ['CheckpointWrapper', 'ReLU']
    """

    def checked(module: Module, recurse: bool, nonwrapped_numel: int) -> bool:
        return recurse or check_fn(module)

    policy = auto_wrap_policy or checked
    if policy(module=model, recurse=True, nonwrapped_numel=_count(model)):  # type: ignore[call-arg]
        _wrap_below(model, checkpoint_wrapper_fn, policy)


def _wrap_below(module: Module, wrap: Callable[[Module], Module], policy: Any) -> int:
    """Wrap what is below a module; the number of elements in what was wrapped."""
    wrapped = 0
    for name, child in list(module.named_children()):
        if not policy(module=child, recurse=True, nonwrapped_numel=_count(child)):
            continue
        below = _wrap_below(child, wrap, policy)
        left = _count(child) - below
        if policy(module=child, recurse=False, nonwrapped_numel=left):
            setattr(module, name, wrap(child))
            below += left
        wrapped += below
    return wrapped


def _count(module: Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _rename(state: dict[str, Any], old: str, new: str) -> None:
    """Replace the beginning of names in a state dict."""
    for name in [name for name in state if name.startswith(old)]:
        state[new + name[len(old) :]] = state.pop(name)
