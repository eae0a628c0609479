"""Straight lines for calls that are made again and again: text that decides once, for a kind of
call, what a loop over its arguments would decide each time.

* `reader`: what a call depends on, by the classes of its arguments;
* `sorter`: the same for rows, from tensors to arrays;
* `replay`: what a call allocated and launched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from types import CodeType
from typing import Any

import numpy as np

from flambeau._core.settings import Determinism
from flambeau._runtime.cpu import address
from flambeau._runtime.cuda.memory import Block, Current
from flambeau._tensor.device_array import DeviceArray, layout_of

NUMBERS = frozenset((int, float, bool, type(None), str, complex))
"""Classes of arguments that say all that a call depends on."""
LISTS = frozenset((list, tuple))
FEW = 4
"""Arrays of which each is compared with each."""


@cache
def _code(text: str) -> CodeType:
    return compile(text, "<flambeau straight lines>", "exec")


def made(text: str, **scope: Any) -> Any:
    """The function `call` of a text; texts of one form are compiled once."""
    exec(_code(text), scope)
    return scope["call"]


def _function(count: int, lines: Sequence[str]) -> str:
    head = f"def call({', '.join(f'v{k}' for k in range(count))}):"
    return "\n    ".join([head, *lines])


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' * (len(parts) == 1)})"


# ---- what a call depends on


def reader(kinds: tuple[type, ...], state: Callable[[], Any] | None) -> Any:
    """A function of arguments of these classes: what a call depends on, and the arrays among them;
    None where a list holds more than numbers.

    `state`: what settings a call depends on, besides that of deterministic algorithms.

    Returns:
        None where the classes do not tell.
    """
    lines, key, arrays = [], ["Determinism.enabled"], []
    if state is not None:
        key.append("state()")
    for place, kind in enumerate(kinds):
        name = f"v{place}"
        if issubclass(kind, DeviceArray):
            key.append(f"{name}.layout or layout_of({name})")
            arrays.append(name)
        elif kind in LISTS:
            lines += [f"k{place} = tuple(map(type, {name}))",
                      f"if not NUMBERS.issuperset(k{place}):", "    return None"]  # fmt: skip
            key += [f"k{place}", f"*{name}"]
        elif issubclass(kind, (np.ndarray, np.generic)):
            return None
        else:
            key.append(name)
    if len(arrays) <= FEW:
        key += [f"{a} is {b}" for k, a in enumerate(arrays) for b in arrays[:k]]
    else:
        key.append(f"same({_tuple(arrays)})")
    lines.append(f"return {_tuple(key)}, {_tuple(arrays)}")
    return made(_function(len(kinds), lines), Determinism=Determinism, state=state, same=same,
                layout_of=layout_of, NUMBERS=NUMBERS)  # fmt: skip


def same(arrays: Sequence[Any]) -> Any:
    """Which arrays are one and the same; False where none are."""
    numbers = [id(array) for array in arrays]
    return len(set(numbers)) < len(numbers) and tuple(map(numbers.index, numbers))


def sorter(kinds: tuple[type, ...], tensors: set[type], plain: frozenset[type]) -> Any:
    """A function of a row's arguments, of these classes: the place of its arrays, whether one of
    the tensors learns, and the arguments as kernels get them; None where tensors lie elsewhere or
    lists hold more than what is plain.

    Returns:
        None where there is no tensor, or an argument of another class.
    """
    names, lines, parts = [], [], []
    for place, kind in enumerate(kinds):
        name = f"v{place}"
        if kind in tensors:
            names.append(name)
            parts.append(f"d{place}")
        elif kind in LISTS:
            lines += [f"if not plain.issuperset(map(type, {name})):", "    return None"]
            parts.append(f"list({name})")
        elif kind in plain:
            parts.append(name)
        else:
            return None
    if not names:
        return None
    data = [f"d{name[1:]}" for name in names]
    lines += [f"{d} = {v}._data" for d, v in zip(data, names, strict=True)]
    lines += [f"if not ({' and '.join(f'isinstance({d}, DeviceArray)' for d in data)}):",
              "    return None", f"place = {data[0]}.place"]  # fmt: skip
    if len(data) > 1:
        lines += [f"if not ({' and '.join(f'{d}.place is place' for d in data[1:])}):",
                  "    return None"]  # fmt: skip
    learns = " or ".join(f"{name}._requires_grad" for name in names)
    lines.append(f"return place, {learns}, {_tuple(parts)}")
    return made(_function(len(kinds), lines), DeviceArray=DeviceArray, plain=plain)


# ---- what a call did


class Lines:
    """The lines of a replay in the making, and what they use."""

    def __init__(self, device: int) -> None:
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {"Block": Block, "Current": Current, "address": address,
                                      "device": device}  # fmt: skip
        self.bases: dict[Any, str] = {}

    def constant(self, value: Any) -> str:
        """A name for something that does not change."""
        name = f"c{len(self.scope)}"
        self.scope[name] = value
        return name

    def result(self, part: Any) -> str:
        """The expression of a result; those that are views of one array are so again."""
        if part == ():
            return "None"
        if part.__class__ is int:
            return f"v{part}"
        block, begin = f"b{part.room}", f"p{part.room}"
        if part.make is None:
            return f"{self.constant(part.odd)}({block}, device)"
        at = f"{begin} + {part.offset}" if part.offset else begin
        make = self.constant(part.make)
        if part.over is None:
            return f"{make}({block}, {at})"
        key = part.room, part.over
        if key not in self.bases:
            name = self.bases[key] = f"w{len(self.bases)}"
            first, make_base = part.over
            self.lines.append(f"{name} = {self.constant(make_base)}({block}, {begin} + {first})")
        return f"{make}({self.bases[key]}, {at})"


def replay(count: int, rooms: Sequence[int], launches: Sequence[tuple[Any, ...]], results: Any,
           device: int) -> Any:  # fmt: skip
    """A function of `count` arrays that does again what a call did.

    Args:
        rooms: bytes of memory that it allocates.
        launches: functions of (stream, *arguments), the arguments, and whether the function takes
            addresses alone, without a stream. An argument is (True, which array, or which memory
            behind these, byte) or (False, what it is, 0).
        results: a `repeating.Result`, the number of an array, or a list of these and () for None.
    """
    found = Lines(device)
    for k, nbytes in enumerate(rooms):
        found.lines += [f"b{k} = Block({nbytes}, device)", f"p{k} = b{k}.address"]
    found.lines.append("stream = Current.stream")
    for go, arguments, by_addresses in launches:
        given = [] if by_addresses else ["stream"]
        for is_place, value, more in arguments:
            beyond = f" + {more}" if more else ""
            if not is_place:
                name = found.constant(value)
                is_array = by_addresses and isinstance(value, np.ndarray)
                given.append(f"address({name})" if is_array else name)
            elif value >= count:
                given.append(f"p{value - count}{beyond}")
            else:
                given.append(f"address(v{value}){beyond}" if more or by_addresses else f"v{value}")
        found.lines.append(f"{found.constant(go)}({', '.join(given)})")
    if results.__class__ is list:
        parts = [found.result(part) for part in results]
        found.lines.append(f"return {_tuple(parts)}")
    else:
        found.lines.append(f"return {found.result(results)}")
    return made(_function(count, found.lines), **found.scope)
