"""Type variables of schemas: `t` in `aten::append.t(t[](a!) self, t(c -> *) el)`."""

from __future__ import annotations

from flambeau.jit.ir import types as T


class Mismatch(Exception):
    """Why a type does not fit another one with variables."""


Bound = dict[str, T.Type]


def has_variables(type: T.Type) -> bool:
    """Whether a type variable stands anywhere in a type."""
    return isinstance(type, T.VariableType) or any(map(has_variables, type.parts))


def bind(formal: T.Type, actual: T.Type, bound: Bound) -> None:
    """Note in `bound` what the variables of `formal` stand for, if an argument has type `actual`.

    Raises:
        Mismatch: with torch's words.
    """
    if not has_variables(formal):
        return
    if isinstance(formal, T.VariableType):
        _bind_variable(formal, actual, bound)
    elif isinstance(formal, T.OptionalType):
        if isinstance(actual, T.OptionalType):
            bind(formal.inner, actual.inner, bound)
        elif actual != T.NONE:
            bind(formal.inner, actual, bound)
    elif isinstance(formal, T.ListType):
        _bind_list(formal, actual, bound)
    else:
        _bind_parts(formal, actual, bound)


def _bind_variable(formal: T.VariableType, actual: T.Type, bound: Bound) -> None:
    known = bound.get(formal.name)
    if known is None:
        bound[formal.name] = actual
        return
    unified = T.unify(known, actual)
    if unified is None:
        raise Mismatch(
            f"Type variable '{formal.name}' previously matched to type {shown(known)} "
            f"is matched to type {shown(actual)}"
        )
    bound[formal.name] = unified


def _bind_list(formal: T.ListType, actual: T.Type, bound: Bound) -> None:
    if isinstance(actual, T.ListType):
        bind(formal.element, actual.element, bound)
        return
    element = _element_of(actual) if isinstance(actual, T.TupleType) else None
    if element is None:
        raise Mismatch(f"Cannot match {shown(formal)} to {shown(actual)}")
    bind(formal.element, element, bound)


def _element_of(actual: T.TupleType) -> T.Type | None:
    """The type that all elements of a tuple have in common."""
    found: T.Type | None = None
    for element in actual.elements:
        found = element if found is None else T.unify(found, element)
        if found is None:
            return None
    return found


def _bind_parts(formal: T.Type, actual: T.Type, bound: Bound) -> None:
    if type(formal) is not type(actual):
        word = {T.TupleType: "tuple", T.DictType: "dict", T.FutureType: "future"}.get(type(formal))
        raise Mismatch(f"Cannot match a {word} to {shown(actual)}")
    if len(formal.parts) != len(actual.parts):
        raise Mismatch("Cannot match tuples of mismatched size")
    for inner, given in zip(formal.parts, actual.parts, strict=True):
        bind(inner, given, bound)


def evaluate(formal: T.Type, bound: Bound) -> T.Type | None:
    """The type with its variables filled in; None if one of them is unknown."""
    if isinstance(formal, T.VariableType):
        return bound.get(formal.name)
    if not formal.parts:
        return formal
    parts = [evaluate(part, bound) for part in formal.parts]
    if any(part is None for part in parts):
        return None
    return formal.with_parts(parts)  # type: ignore[arg-type]


def shown(type: T.Type) -> str:
    """A type as errors show it: what was not annotated is said to be inferred."""
    return f"{type.annotation} (inferred)" if getattr(type, "inferred", False) else type.annotation
