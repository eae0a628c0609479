"""Parameters and buffers as functions of others: `register_parametrization` and what goes with it.

A parametrized module gets a class of its own, `ParametrizedLinear` say, in which `weight` is a
property: reading it runs `module.parametrizations.weight`, a `ParametrizationList` that holds the
steps and the tensors they start from.
"""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import NotImplementedInFlambeau, missing
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.nn.containers import ModuleDict
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter
from flambeau.nn.utils.parametrize.classes import cached, set_class
from flambeau.nn.utils.parametrize.lists import (
    ParametrizationList,
    check_is_tensor,
    check_same,
    register_tensor,
)

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache: dict[tuple[int, str], Any] = {}
"""Values computed inside of `cached()`, by module and name."""
_cache_enabled: int = 0
"""How many `cached()` are around."""

INVERSE_CHANGES = (
    "The tensor returned by parametrization.right_inverse must have the same {what} as "
    "module.{name}, unless the `unsafe` flag is enabled.\nmodule.{name}.{what}: {old}\n"
    "returned {what}: {new}"
)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Make a parameter or buffer of a module the result of `parametrization`.

    The tensor itself moves to `module.parametrizations.<tensor_name>.original`; what the module
    shows by its old name is `parametrization(original)`, computed anew on every access (see
    `cached`). Registered again, parametrizations are chained. If the parametrization has a method
    `right_inverse`, the original starts as `right_inverse(tensor)`, and the module's tensor can be
    assigned to; a first parametrization may return several tensors there and takes as many.

    Args:
        unsafe: allow changes of dtype and shape, and check nothing.

    Raises:
        ValueError: no such tensor, or the parametrization changes what it may not.

    >>> import flambeau as torch
    >>> class Symmetric(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> from flambeau.nn.utils import parametrize
    >>> layer = parametrize.register_parametrization(torch.nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all())
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_next(module, tensor_name, parametrization)
        steps: Any = module.parametrizations[tensor_name]  # type: ignore[index]
        steps.append(parametrization)
        steps.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        _register_first(module, tensor_name, parametrization, unsafe)
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def _register_first(module: Any, name: str, parametrization: Module, unsafe: bool) -> None:
    steps = ParametrizationList([parametrization], getattr(module, name), unsafe=unsafe)
    delattr(module, name)
    if hasattr(module, name):
        raise AssertionError(f"Module already has an attribute named '{name}'")
    base = type_before_parametrizations(module)
    if not is_parametrized(module):
        set_class(module, base, [name])  # who is told of the new part sees the new class
        module.parametrizations = ModuleDict()
    module.parametrizations[name] = steps
    set_class(module, base, list(module.parametrizations))


def _check_next(module: Module, name: str, parametrization: Any) -> None:
    """A further step maps tensors of one shape and dtype to such tensors, in both directions."""
    value = getattr(module, name)
    result = parametrization(value)
    check_is_tensor(result)
    for what in ("dtype", "shape"):
        before, after = f"module.{name}.{what}", f"parametrization(module.{name}).{what}"
        check_same(what, getattr(value, what), result, "the ", before, after)
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        start = parametrization.right_inverse(result)
    except NotImplementedInFlambeau:
        raise
    except NotImplementedError:
        return
    if not isinstance(start, Tensor):
        raise ValueError(
            f"parametrization.right_inverse must return a tensor. Got: {type(start).__name__}"
        )
    for what in ("dtype", "shape"):
        old, new = getattr(value, what), getattr(start, what)
        if old != new:
            raise ValueError(INVERSE_CHANGES.format(what=what, name=name, old=old, new=new))


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of a module is parametrized, or, without a name, any."""
    found = getattr(module, "parametrizations", None)
    names = found.keys() if isinstance(found, ModuleDict) else ()
    return len(names) > 0 if tensor_name is None else tensor_name in names


def type_before_parametrizations(module: Module) -> type:
    """The class that a module had, or has, without parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make a parametrized tensor a parameter or buffer again.

    Args:
        leave_parametrized: it keeps the value that it shows now; otherwise it takes that of
            `original`, which is possible only if there is one.

    Raises:
        ValueError: the tensor is not parametrized, or has several originals.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    table: Any = module.parametrizations
    tensor = _final_tensor(module, tensor_name, table[tensor_name], leave_parametrized)
    base = type_before_parametrizations(module)
    del table[tensor_name]
    if not len(table):
        del module.parametrizations
    set_class(module, base, list(table))
    register_tensor(module, tensor_name, tensor)
    return module


def _final_tensor(module: Module, name: str, steps: Any, leave_parametrized: bool) -> Tensor:
    if not steps.is_tensor:
        if not leave_parametrized:
            raise ValueError(
                "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
                "parametrized in terms of a sequence of tensors."
            )
        value = getattr(module, name)
        return Parameter(value) if value.requires_grad else value
    original = steps.original
    if leave_parametrized:
        with no_grad():
            original.set_(getattr(module, name))
    return original  # type: ignore[no-any-return]


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Let a module share the parametrizations and originals of another; returns `to_module`.

    Args:
        tensor_name: only that tensor's; by default all. What `to_module` lacks is created.
    """
    if not is_parametrized(from_module):
        return to_module
    table: Any = from_module.parametrizations
    for name in table if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for step in table[name]._steps():
            register_parametrization(to_module, name, step)
        target = to_module.parametrizations[name]  # type: ignore[index]
        for original in table[name]._names():
            setattr(target, original, getattr(table[name], original))
    return to_module


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
