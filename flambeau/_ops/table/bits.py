"""What operators do with tensors that have a conjugate or negative bit: see `_tensor/bits.py`.

`run` is where all rows come to that did not find an array. Methods of Tensor that are no rows are
in `bit_methods.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._ops.table.op import Op
from flambeau._tensor.bits import (
    Bits,
    BitTensor,
    among,
    like,
    on_memory,
    reading,
    standing_in,
    without_values,
    writing,
)
from flambeau._tensor.tensor import Tensor, memory_of, new
from flambeau.autograd.history import rewritten


def run(op: Op, values: tuple[Any, ...], found: list[Tensor], out: Any, inplace: Any) -> Any:
    """A row's result where the tensors `found` have bits.

    `inplace`: the function that was called, if that was the form in place.
    """
    from flambeau._ops.table.dispatch import Plain, explain
    from flambeau._ops.table.outputs import write_out

    if inplace is not None:
        with writing([values[0]]), reading(found):
            return inplace(*values)
    plain = PLAIN.get(op) or PLAIN.setdefault(op, Plain(op))
    if op.kind == "view":
        return _view(op, plain, values, found)
    if out is None and op.factors and op.bits is None:
        standing = _standing(op, values, found)
        if standing is not None:
            with standing:
                return plain(*values)
    if _tensors_for_lists(op, values):
        raise explain(op, values, TypeError())
    if op.bits is not None:
        result = op.bits(plain, *values)
        if result is not NotImplemented:
            return result if out is None else write_out(op, out, result, values)
    arguments = zip(op.schema.arguments, values, strict=False)
    targets = [value for argument, value in arguments if argument.written and value is not None]
    with taking_memory(_factors(op, values)), writing(targets), reading(among(values)):
        result = plain(*values)
    return result if out is None else write_out(op, out, result, values)


def _view(op: Op, plain: Callable[..., Any], values: tuple[Any, ...], found: list[Tensor]) -> Any:
    """A view of a tensor's memory, with its bits as well."""
    source = values[0]
    alone = len(found) == 1 and found[0] is source
    if alone and not is_recorded(source):
        return of_memory(op)(*values)
    if alone:
        with standing_in({id(source): memory_of(source)}):
            made = plain(*values)
    else:
        with on_memory([source]), reading(found):
            made = plain(*values)
    return like(source, made) if op.turn is None else made


def is_recorded(source: Tensor) -> bool:
    """Whether a view of a tensor might be recorded."""
    touched = source._requires_grad or source._creation or rewritten.count
    return bool(modes.grad.enabled and touched)


def turned(op: Op, source: Tensor, data: np.ndarray) -> Tensor:
    """A new view with the bits that a row gives it, or a plain tensor, which gets them when it is
    recorded."""
    turn: Any = op.turn
    conjugated, negated = turn(source)
    made: Any
    if (conjugated or negated) and not is_recorded(source):
        Bits.exist = True
        made = new(BitTensor)
        made._stored, made._conjugated, made._negated = data, conjugated, negated
    else:
        made = new(Tensor)
        made._data = data
    return made  # type: ignore[no-any-return]


def is_unwatched(tensor: Tensor) -> bool:
    """Whether a view of a tensor with a bit can be made by `of_memory` without a further look."""
    if type(tensor) is not BitTensor or modes.watch.active:
        return False
    return not (tensor._requires_grad or tensor._creation or rewritten.count)


def of_memory(op: Op) -> Callable[..., Any]:
    """What makes views of the memory of tensors with bits, and gives them the same."""
    found = OF_MEMORY.get(op)
    if found is not None:
        return found
    from flambeau._ops.table.dispatch import Plain

    return OF_MEMORY.setdefault(op, Plain(op, of_memory=True))


def let_see_factors(op: Op, function: Callable[..., Any]) -> None:
    """Let the generated function of a row, of whose tensors all are factors of a product, see what
    stands for conjugate ones."""
    tensors = {argument.name for argument in op.schema.arguments if argument.is_tensor}
    if op.bits is not None or tensors != set(op.factors):
        return
    from flambeau._ops.products.conjugated import factor  # rows of products alone ask for it

    def seen(tensor: Tensor) -> np.ndarray | None:
        plain = tensor._conjugated and not tensor._negated
        return factor(memory_of(tensor)) if plain else None

    without_values(function, seen)


def _standing(op: Op, values: tuple[Any, ...], found: list[Tensor]) -> standing_in | None:
    """What stands for the factors of a product, if those are all that has a bit, and conjugate
    alone; else None."""
    factors = FACTORS.get(op) or FACTORS.setdefault(op, _places(op))
    for place, value in enumerate(values):
        if place not in factors and isinstance(value, Tensor) and value._stored is not None:
            return None
    if any(tensor._negated or not tensor._conjugated for tensor in found):
        return None
    from flambeau._ops.products.conjugated import factor  # no small import

    return standing_in({id(tensor): factor(memory_of(tensor)) for tensor in found})


def _places(op: Op) -> tuple[int, ...]:
    names = [argument.name for argument in op.schema.arguments]
    return tuple([names.index(name) for name in op.factors])


FACTORS: dict[Op, tuple[int, ...]] = {}
"""The positions of a row's factors."""


def _tensors_for_lists(op: Op, values: tuple[Any, ...]) -> bool:
    """Whether a tensor, which iterates over its rows, stands where a list of tensors has to."""
    arguments = zip(op.schema.arguments, values, strict=False)
    listed = [value for argument, value in arguments if argument.is_tensor and argument.is_list]
    return op.kind != "composite" and any(isinstance(value, Tensor) for value in listed)


def _factors(op: Op, values: tuple[Any, ...]) -> list[Tensor]:
    """Conjugate views that are nothing but factors of a product."""
    if not op.factors:
        return []
    named = zip([argument.name for argument in op.schema.arguments], values, strict=False)
    given = [(name, value) for name, value in named if isinstance(value, Tensor)]
    others = [value for name, value in given if name not in op.factors]
    return [
        value
        for name, value in given
        if value._conjugated and not value._negated and not any(value is one for one in others)
    ]


class taking_memory(on_memory):
    """Products see the memory of these conjugate views, and that it is to be conjugated."""

    def array(self, tensor: Tensor) -> Any:
        from flambeau._ops.products.conjugated import factor

        return factor(memory_of(tensor))


OF_MEMORY: dict[Op, Callable[..., Any]] = {}
PLAIN: dict[Op, Callable[..., Any]] = {}
"""The functions of rows without the test for modes, which have had their say."""
