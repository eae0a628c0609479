"""Views: to which dim of the result a dim of the tensor goes, if it goes to one as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.distributed.placements import Partial, Shard
from flambeau.distributed.tensor.rules.call import Call, Choice, Rule, positive

Places = list[int | None]


def view(call: Call) -> list[Choice]:
    """A rule for views: parts go where their dim goes, terms stay terms, copies copies."""
    choices = [call.everywhere()]
    now, count = call.placement(0), len(call.outputs)
    if isinstance(now, Partial):
        return [Choice((now,), (now,) * count)]
    if isinstance(now, Shard):
        after = PLACES[call.base](call)[now.dim]
        if after is not None:
            choices.append(Choice((now,), (Shard(after),) * count))
    return choices


def _reshaped(call: Call) -> Places:
    """Dims that keep their length, and the first of those that are divided or joined evenly."""
    before, after = list(call.shape(0)), list(call.outputs[0].shape)
    places: Places = [None] * len(before)
    for olds, news in groups(before, after):
        first, target = _first(olds, before), _first(news, after)
        if first is None or target is None:
            continue
        is_same = before[first] == after[target]
        is_even = before[first] % call.parts == 0 and after[target] % call.parts == 0
        if is_same or is_even:
            places[first] = target
    return places


def _first(dims: list[int], shape: list[int]) -> int | None:
    """The first dim with more than one element."""
    return next((dim for dim in dims if shape[dim] != 1), dims[0] if len(dims) == 1 else None)


def groups(before: list[int], after: list[int]) -> list[tuple[list[int], list[int]]]:
    """Dims of two shapes of the same elements that belong together: the shortest runs of both that
    have the same number of elements."""
    found: list[tuple[list[int], list[int]]] = []
    old = new = 0
    while old < len(before) or new < len(after):
        olds, news, left, right = [], [], 1, 1
        if old < len(before):
            olds, left, old = [old], before[old], old + 1
        if new < len(after) and (left != 1 or not olds or after[new] == 1):
            news, right, new = [new], after[new], new + 1
        while left != right:
            if left < right:
                if old == len(before):
                    return found
                olds, left, old = [*olds, old], left * before[old], old + 1
            else:
                if new == len(after):
                    return found
                news, right, new = [*news, new], right * after[new], new + 1
        found.append((olds, news))
    return found


def _ndim(call: Call) -> int:
    return len(call.shape(0))


def _transposed(call: Call) -> Places:
    ndim = _ndim(call)
    one, other = positive(call.args[1], ndim), positive(call.args[2], ndim)
    places: Places = list(range(ndim))
    places[one], places[other] = other, one
    return places


def _turned(call: Call) -> Places:
    places: Places = list(range(_ndim(call)))
    return places[::-1]


def _permuted(call: Call) -> Places:
    order = [positive(dim, _ndim(call)) for dim in call.args[1]]
    return [order.index(dim) for dim in range(len(order))]


def _unsqueezed(call: Call) -> Places:
    at = positive(call.args[1], _ndim(call) + 1)
    return [dim + (dim >= at) for dim in range(_ndim(call))]


def _without(call: Call, gone: list[int]) -> Places:
    return [None if dim in gone else dim - sum(g < dim for g in gone) for dim in range(_ndim(call))]


def _squeezed(call: Call) -> Places:
    given = call.argument("dim")
    listed = given if isinstance(given, (list, tuple)) else [given]
    dims = range(_ndim(call)) if given is None else [positive(d, _ndim(call)) for d in listed]
    return _without(call, [dim for dim in dims if call.shape(0)[dim] == 1])


def _selected(call: Call) -> Places:
    return _without(call, [positive(call.argument("dim", 0), _ndim(call))])


def _expanded(call: Call) -> Places:
    more = len(call.outputs[0].shape) - _ndim(call)
    whole = call.outputs[0].shape
    return [d + more if whole[d + more] == n else None for d, n in enumerate(call.shape(0))]


def _cut(call: Call) -> Places:
    """Dims but that along which it is cut, unless all of it is taken."""
    at = positive(call.argument("dim", 0), _ndim(call))
    whole = call.outputs[0].shape
    keeps = len(call.outputs) == 1 and whole == call.shape(0)
    return [dim if dim != at or keeps else None for dim in range(_ndim(call))]


def _padded(call: Call) -> Places:
    whole = call.outputs[0].shape
    return [d if whole[d] == n else None for d, n in enumerate(call.shape(0))]


def _cut_backward(call: Call) -> Places:
    at = positive(call.args[2], len(call.args[1]))
    return [dim if dim != at else None for dim in range(_ndim(call))]


def _selected_backward(call: Call) -> Places:
    at = positive(call.args[2], len(call.args[1]))
    return [dim + (dim >= at) for dim in range(_ndim(call))]


def _repeated(call: Call) -> Places:
    more = len(call.args[1]) - _ndim(call)
    return [d + more if call.args[1][d + more] == 1 else None for d in range(_ndim(call))]


PLACES: dict[str, Callable[[Call], Places]] = {
    "view": _reshaped, "_unsafe_view": _reshaped, "reshape": _reshaped, "t": _turned,
    "transpose": _transposed, "permute": _permuted, "unsqueeze": _unsqueezed, "squeeze": _squeezed,
    "select": _selected, "unbind": _selected, "expand": _expanded, "slice": _cut, "split": _cut,
    "split_with_sizes": _cut, "chunk": _cut, "narrow": _cut, "constant_pad_nd": _padded,
    "slice_backward": _cut_backward, "select_backward": _selected_backward, "repeat": _repeated,
}  # fmt: skip
RULES: dict[str, Rule] = dict.fromkeys(PLACES, view)


def new_values(call: Call) -> list[Choice]:
    """`new_zeros` and its like: as the tensor lies where they have its shape; copies otherwise."""
    now: Any = call.placement(0)
    if call.outputs[0].shape == call.shape(0) and isinstance(now, Shard):
        return [Choice((now,), (now,))]
    return [Choice((now,), (call.everywhere().outputs[0],))]


RULES.update(dict.fromkeys("new_zeros new_empty new_ones new_full".split(), new_values))
