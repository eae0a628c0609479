"""From a schema to what carries it out, on the values of a running program."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from flambeau._core.missing import NotImplementedInFlambeau
from flambeau.jit.ir.function import FunctionSchema
from flambeau.jit.operators import (  # noqa: F401  (each notes its implementations)
    attention,
    containers,
    formatting,
    identities,
    layers,
    number_functions,
    numbers,
    session,
    stored,
    strings,
    tensors,
    variants,
)
from flambeau.jit.operators.forms import Form, Passing, callable_of
from flambeau.jit.operators.registry import FUNCTIONS, PIECES
from flambeau.jit.operators.rows import derive

_forms: dict[str, Form | None] = {}


def form(schema: FunctionSchema) -> Form:
    """How an operator is called in generated text.

    Raises:
        NotImplementedInFlambeau: flambeau has nothing that does it.
    """
    found = find(schema)
    if found is None:
        raise NotImplementedInFlambeau(f"flambeau cannot run the operator {schema.full_name}")
    return found


def refusing(schema: FunctionSchema) -> Form:
    """The form of an operator that flambeau has not: programs may have it where they never come."""

    def refuse(*values: Any) -> Any:
        raise NotImplementedInFlambeau(f"flambeau cannot run the operator {schema.full_name}")

    passing = tuple(Passing(p.name, index) for index, p in enumerate(schema.arguments))
    return Form(refuse, passing, starred=True)


def find(schema: FunctionSchema) -> Form | None:
    """The form of an operator, or None."""
    name = schema.full_name
    if name not in _forms:
        _forms[name] = _written(schema) or derive(schema) or _storing(schema)
    return _forms[name]


def _written(schema: FunctionSchema) -> Form | None:
    """The form of what is written by hand."""
    passing = tuple(Passing(p.name, index) for index, p in enumerate(schema.arguments))
    for key in (schema.full_name, f"{schema.name}.*"):
        if key in PIECES:
            return Form(None, passing, piece=PIECES[key])
        if key in FUNCTIONS:
            return Form(FUNCTIONS[key], passing, starred=True)
    return None


def _storing(schema: FunctionSchema) -> Form | None:
    """The form of an overload with `out`, of another one that computes the result."""
    computing = stored.computing(schema)
    if computing is None or find(computing) is None:
        return None
    passing = tuple(Passing(p.name, index) for index, p in enumerate(schema.arguments))
    return Form(stored.storing(implementation(computing), computing), passing, starred=True)


@cache
def _implementation(name: str) -> Callable[..., Any]:
    return callable_of(_forms[name])  # type: ignore[arg-type]


def implementation(schema: FunctionSchema) -> Callable[..., Any]:
    """A function of runtime values, positional, in the order of the schema. Of several results it
    gives a tuple, of none None.

    Raises:
        NotImplementedInFlambeau: flambeau has nothing that does it.
    """
    if schema.full_name in FUNCTIONS:
        return FUNCTIONS[schema.full_name]
    form(schema)
    return _implementation(schema.full_name)
