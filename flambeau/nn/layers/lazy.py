"""Lazy modules: parameters get their shapes from the first input."""

from __future__ import annotations

import itertools
from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.nn.parameter import is_lazy


class LazyModuleMixin:
    """Makes a Module lazy: the first call materializes the parameters and changes the class.

    A lazy class calls `initialize_parameters(*args, **kwargs)` of its own before its first forward
    and becomes `cls_to_become`.
    """

    cls_to_become: type | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        register = self._register_load_state_dict_pre_hook
        self._load_hook = register(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        persistent = {
            name: buffer
            for name, buffer in self._buffers.items()
            if name not in self._non_persistent_buffers_set
        }
        for name, value in itertools.chain(self._parameters.items(), persistent.items()):
            if value is None:
                continue
            plain = is_lazy(value) or keep_vars
            destination[prefix + name] = value if plain else value.detach()

    def _lazy_load_hook(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Give uninitialized parameters the shapes of a state that is about to be loaded."""
        for name, value in itertools.chain(self._parameters.items(), self._buffers.items()):
            key = prefix + name
            if key not in state_dict or value is None:
                continue
            if is_lazy(value) and not is_lazy(state_dict[key]):
                with no_grad():
                    value.materialize(state_dict[key].shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize the parameters for an input; to be overridden."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer still has no shape."""
        return any(map(is_lazy, itertools.chain(self._parameters.values(), self._buffers.values())))

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        """The pre-hook of the first call."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        for name in ("_initialize_hook", "_load_hook"):
            module.__dict__.pop(name).remove()
        module.__class__ = module.cls_to_become or module.__class__
