"""Enumerations in programs: their types, and their members as constants."""

from __future__ import annotations

import enum
from weakref import WeakKeyDictionary

from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import PYTHON_UNIT
from flambeau.jit.modules.names import qualified_name

types: WeakKeyDictionary[type, T.EnumType] = WeakKeyDictionary()


def enum_type(owner: type[enum.Enum]) -> T.EnumType:
    """The type of the members of an enumeration, whose values all have one type, else Any.

    Raises:
        ValueError: it has no members.
    """
    known = types.get(owner)
    if known is None:
        name = PYTHON_UNIT.mangle(qualified_name(owner))
        known = types[owner] = T.EnumType(name, _value_type(owner), owner)
        PYTHON_UNIT.types[name] = known
    return known


def _value_type(owner: type[enum.Enum]) -> T.Type:
    from flambeau.jit.modules.inference import inferred

    members = list(owner)
    if not members:
        raise ValueError(f"No enum values defined for: '{owner.__class__}'")
    found: T.Type | None = None
    for member in members:
        one = inferred(member.value)
        found = one if found is None else T.unify(found, one)
        if found is None:
            return T.ANY
    return found or T.ANY
