"""The type of a Python value that a module or object holds."""

from __future__ import annotations

import enum
import inspect
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.jit.frontend.errors import FrontendError
from flambeau.jit.ir import types as T
from flambeau.jit.ir.values import SIMPLE, enumeration_number
from flambeau.nn import Module


class NoType(TypeError):
    """A value has no type in TorchScript; the text says why."""


def inferred(value: Any) -> T.Type:
    """The type of a value; NoType if it has none."""
    if isinstance(value, Tensor):
        return T.TENSOR
    simple = SIMPLE.get(type(value))
    if simple is not None:
        return simple
    if enumeration_number(value) is not None:
        return T.INT
    if isinstance(value, enum.Enum):
        from flambeau.jit.modules.enums import enum_type

        return enum_type(type(value))
    declared = getattr(value, "_type", None)
    if isinstance(value, Module):
        raise NoType("Cannot infer concrete type of torch.nn.Module")
    if isinstance(declared, T.Type):
        return declared
    for kind, infer in CONTAINERS.items():
        if isinstance(value, kind):
            return infer(value)
    return _of_object(value)


def _of_tuple(value: tuple[Any, ...]) -> T.Type:
    return T.TupleType(tuple(map(inferred, value)))


def _of_list(value: list[Any]) -> T.Type:
    if not value:
        raise NoType("List trace inputs must have elements")
    return T.ListType(_common(value, "List inputs to traced functions must have consistent "
                                     "element type. Found {} and {}"))  # fmt: skip


def _of_dict(value: dict[Any, Any]) -> T.Type:
    if not value:
        raise NoType("Dictionary inputs must have entries")
    text = "Dictionary inputs to traced functions must have consistent type. Found {} and {}"
    key, held = _common(value, text), _common(value.values(), text)
    return T.DictType(key, held)


CONTAINERS: dict[type, Any] = {tuple: _of_tuple, list: _of_list, dict: _of_dict}


def _common(values: Any, text: str) -> T.Type:
    found: T.Type | None = None
    for value in values:
        one = inferred(value)
        both = one if found is None else T.unify(found, one)
        if both is None:
            assert found is not None
            raise NoType(text.format(found.annotation, one.annotation))
        found = both
    assert found is not None
    return found


def _of_object(value: Any) -> T.Type:
    """The class of an object, compiled now if it has not been and can be."""
    from flambeau.jit.modules.classes import can_be_compiled, class_type_of, known_class

    owner = type(value)
    known = known_class(owner)
    if known is not None:
        return known
    if not inspect.isclass(value) and can_be_compiled(owner):
        try:
            return class_type_of(owner)
        except (RuntimeError, FrontendError, OSError):
            pass  # not a class that scripts can use: said below, as for any other object
    raise NoType(
        "Only tensors and (possibly nested) tuples of tensors, lists, or dicts are supported as "
        f"inputs or outputs of traced functions, but instead got value of type {owner.__name__}."
    )
