"""Forms of calls that torch has given up, but takes: numbers before the tensors they belong to.

`add(x, alpha, y)`, `addcmul_(x, value, a, b)`, `addmm(beta, x, alpha, a, b)`: rows whose numbers
may only be given by name take further positional arguments, `earlier1` and `earlier2`; generated
functions hand the call over where one of them is given.
"""

from __future__ import annotations

from typing import Any

from flambeau._core.settings import warn_once
from flambeau._ops.table import binder
from flambeau._ops.table.op import Op


def lines(op: Op, out: str = "", *, inplace: bool = False) -> list[str]:
    """The text that hands such a call over; `out`: the parameter's name, if there is one."""
    given = binder.earlier_parameters(op)
    if not given:
        return []
    tensors = [binder.python_name(op, a) for a in op.schema.arguments if not a.keyword_only]
    return [
        f"    if {given[0]} is not None:",
        f"        return in_earlier_form(op, ({', '.join([*tensors, *given])},), "
        f"{out or None}, {inplace})",
    ]


def in_earlier_form(
    op: Op, values: tuple[Any, ...], out: Any, inplace: bool, called: str = ""
) -> Any:
    """Call a row as its schema says, and warn; TypeError where the values fit no form."""
    from flambeau._ops.table.overrides import public_function

    while values[-1] is None:
        values = values[:-1]
    function = public_function(op, inplace, called)
    name = function.__name__
    order = _order(op, values)
    if order is None:
        count = len([a for a in op.schema.arguments if not a.keyword_only])
        raise TypeError(f"{name}() takes {count} positional arguments but {len(values)} were given")
    _warn(op, name, order, inplace)
    named = dict(zip(order, values, strict=True))
    tensors = [named.pop(a.name) for a in op.schema.arguments if a.is_tensor]
    return function(*tensors, **named, **({} if out is None else {"out": out}))


def _order(op: Op, values: tuple[Any, ...]) -> list[str] | None:
    """The parameters in the order of the form that values are in."""
    positions = {argument.name: i for i, argument in enumerate(op.schema.arguments)}
    for order in _orders(op):
        if len(order) == len(values) and all(
            binder.fits_at(op, positions[name], value)
            for name, value in zip(order, values, strict=True)
        ):
            return order
    return None


def _orders(op: Op) -> list[list[str]]:
    """Every earlier form; of those that begin with `beta`, also how a method is given it."""
    first, *rest = [a.name for a in op.schema.arguments if a.is_tensor]
    numbers = binder.earlier_numbers(op)
    if numbers[0] != "beta":
        return [[first, *numbers, *rest]]
    return [
        ["beta", first, "alpha", *rest], ["beta", first, *rest],
        [first, "beta", "alpha", *rest], [first, "beta", *rest],
    ]  # fmt: skip


def _warn(op: Op, name: str, order: list[str], inplace: bool) -> None:
    as_method = inplace or order[1] == "beta"
    listed = _listed(op, order, as_method)
    usual = [a.name for a in op.schema.arguments if a.is_tensor]
    new = _listed(op, usual, as_method, binder.earlier_numbers(op))
    warn_once(f"This overload of {name} is deprecated:\n\t{name}({listed})\nConsider using one of "
              f"the following signatures instead:\n\t{name}({new})", 4)  # fmt: skip


def _listed(op: Op, names: list[str], as_method: bool, by_name: list[str] | None = None) -> str:
    """Parameters in torch's words."""
    by_type = {a.name: binder.type_text(a) for a in op.schema.arguments}
    bound = [name for name in names if not (as_method and name == "self")]
    parts = [f"{by_type[name]} {'input' if name == 'self' else name}" for name in bound]
    named = [f"{by_type[name]} {name} = 1" for name in by_name or ()]
    named += [] if as_method else ["Tensor out = None"]
    return ", ".join([*parts, *(["*"] if named else []), *named])
