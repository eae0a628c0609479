"""Modules as functions of their parameters: what was there before `torch.func.functional_call`."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flambeau._core.missing import lazily
from flambeau._tensor.tensor import Tensor
from flambeau.func.modules import functional_call, stack_module_state
from flambeau.nn.module import Module

Names = dict[str, list[str]]
"""A tensor's first name, and all that it has: more than one where modules share it."""


def _names(named: Iterable[tuple[str, Tensor]]) -> tuple[Names, list[Tensor]]:
    """Names and values of tensors, each once."""
    names: Names = {}
    values: dict[int, Tensor] = {}
    first: dict[int, str] = {}
    for name, tensor in named:
        known = first.setdefault(id(tensor), name)
        names.setdefault(known, []).append(name)
        values[id(tensor)] = tensor
    return names, list(values.values())


def _without_numbers(model: Module) -> Module:
    """A copy on the device "meta": what is called with numbers of its own has none."""
    return copy.deepcopy(model).to("meta")


def _leaves(tensors: Sequence[Tensor], tracked: bool) -> tuple[Tensor, ...]:
    if tracked:
        return tuple(tensors)
    return tuple(tensor.detach().requires_grad_(False) for tensor in tensors)  # type: ignore[attr-defined]


class _Functional(Module):
    """A module without tensors of its own."""

    stateless_model: Module

    def _call(self, given: Mapping[str, Tensor], args: Any, kwargs: Any) -> Any:
        return functional_call(self.stateless_model, dict(given), args, kwargs)


def _spread(names: Names, values: Sequence[Tensor]) -> dict[str, Tensor]:
    pairs = zip(names.values(), values, strict=True)
    return {name: value for several, value in pairs for name in several}


class FunctionalModule(_Functional):
    """A module as a function of its parameters: `f(params, *args)`."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...],
                 names_map: Names) -> None:  # fmt: skip
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.names_map = names_map

    @staticmethod
    def _create_from(
        model: Module, disable_autograd_tracking: bool = False
    ) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
        names, values = _names(model.named_parameters(remove_duplicate=False))
        function = FunctionalModule(_without_numbers(model), tuple(names), names)
        return function, _leaves(values, not disable_autograd_tracking)

    def forward(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """The module's result with these parameters."""
        return self._call(_spread(self.names_map, params), args, kwargs)


class FunctionalModuleWithBuffers(_Functional):
    """A module as a function of its parameters and buffers: `f(params, buffers, *args)`."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...],
                 buffer_names: tuple[str, ...], param_names_map: Names,
                 buffer_names_map: Names) -> None:  # fmt: skip
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = param_names, buffer_names
        self.param_names_map, self.buffer_names_map = param_names_map, buffer_names_map

    @staticmethod
    def _create_from(
        model: Module, disable_autograd_tracking: bool = False
    ) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
        names, values = _names(model.named_parameters(remove_duplicate=False))
        others, buffers = _names(model.named_buffers(remove_duplicate=False))
        function = FunctionalModuleWithBuffers(
            _without_numbers(model), tuple(names), tuple(others), names, others
        )
        return function, _leaves(values, not disable_autograd_tracking), tuple(buffers)

    def forward(self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any,
                **kwargs: Any) -> Any:  # fmt: skip
        """The module's result with these parameters and buffers."""
        given = _spread(self.param_names_map, params)
        given.update(_spread(self.buffer_names_map, buffers))
        return self._call(given, args, kwargs)


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> Any:
    """A function of a module's parameters, and these parameters.

    Raises:
        RuntimeError: the module has buffers.
    """
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(model: Module, disable_autograd_tracking: bool = False) -> Any:
    """A function of a module's parameters and buffers, the parameters, and the buffers."""
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def combine_state_for_ensemble(models: Sequence[Module]) -> Any:
    """A function that stands for several modules of one kind, and their tensors, stacked.

    Raises:
        RuntimeError: there are none, or they are of different kinds or modes.
    """
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({(type(model), model.training) for model in models}) > 1:
        raise RuntimeError(
            "combine_state_for_ensemble: Expected all models to be of the same class and to have "
            "the same training/eval mode."
        )
    function, _, _ = make_functional_with_buffers(models[0])
    params, buffers = stack_module_state(list(models))
    return function, tuple(params.values()), tuple(buffers.values())


__getattr__ = lazily(__name__)
