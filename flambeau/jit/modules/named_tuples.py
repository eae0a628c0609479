"""NamedTuples in programs: `typing.NamedTuple` classes and `collections.namedtuple`."""

from __future__ import annotations

import sys
import typing
from typing import Any
from weakref import WeakKeyDictionary

from flambeau._core.class_homes import own_module
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import PYTHON_UNIT
from flambeau.jit.modules.names import qualified_name

types: WeakKeyDictionary[type, T.TupleType] = WeakKeyDictionary()


def named_tuple_type(owner: Any) -> T.TupleType:
    """The type of a NamedTuple. Fields without annotation are Tensors.

    Raises:
        RuntimeError: an annotation is no type of TorchScript.
    """
    known = types.get(owner)
    if known is None:
        name = PYTHON_UNIT.mangle(qualified_name(owner))
        elements = tuple(_element(owner, field) for field in owner._fields)
        defaults = tuple(owner._field_defaults.values())
        known = types[owner] = T.TupleType(elements, name, tuple(owner._fields), defaults)
        PYTHON_UNIT.types[name] = known
    return known


def _element(owner: Any, field: str) -> T.Type:
    from flambeau.jit.modules.annotations import type_of_annotation

    notes = (base.__dict__.get("__annotations__", {}) for base in owner.__mro__)
    note = next((known[field] for known in notes if field in known), None)
    if note is None:
        return T.TENSOR
    if isinstance(note, (str, typing.ForwardRef)):
        note = _evaluated(owner, note)
    found = type_of_annotation(note, default=None)
    if found is None:
        raise RuntimeError(
            f"Unknown type annotation: '{note}' in NamedTuple {owner.__name__}. Likely due to "
            "partial support for ForwardRef parameters in NamedTuples, see #95858. Issue occurred "
            "at "
        )
    return found  # type: ignore[no-any-return]


def _evaluated(owner: Any, note: Any) -> Any:
    text = note if isinstance(note, str) else note.__forward_arg__
    home = own_module(owner)
    scope = vars(sys.modules[home]) if home in sys.modules else {}
    try:
        return eval(text, dict(scope))  # noqa: S307 - the text of a class that has been imported
    except NameError:
        return note
