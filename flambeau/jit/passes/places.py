"""The places in memory that values of a graph stand for: what `alias` keeps its books with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from flambeau._tensor.tensor import Tensor, storage_of
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Node, Value
from flambeau.jit.passes.effects import is_mutable

Place = tuple[Any, ...]
"""`("made", id)`, `("constant", id)`, `("unknown", kind)`."""
KINDS = ("Tensor", "container", "object")
CONTAINERS = (T.ListType, T.DictType, T.TupleType)


class Places:
    """Which places each value may be, what they hold, who outside may know them."""

    def __init__(self) -> None:
        self._places: dict[Value, set[Place]] = {}
        self._held: dict[Place, set[Place]] = {}  # what lies in a container
        self._escaped: dict[str, set[Place]] = {}  # by kind: what someone outside may know
        self._kind_of: dict[Place, str] = {}
        self._writes: dict[Node, set[Place]] = {}
        for kind in KINDS:
            self._kind_of["unknown", kind] = kind
        for kind in ("container", "object"):
            self._held["unknown", kind] = {("unknown", inner) for inner in KINDS}
        self._changed = False

    # ---- what is known

    def _of(self, value: Value) -> set[Place]:
        return self._closed(self._places.get(value, set()))

    def _closed(self, places: set[Place]) -> set[Place]:
        """The places, and where one of them is unknown or known outside, all that it may be."""
        found = set(places)
        for place in places:
            kind = self._kind_of[place]
            escaped = self._escaped.get(kind, set())
            if place[0] == "unknown" or place in escaped:
                found |= escaped
                found.add(("unknown", kind))
        return found

    def _reach(self, places: set[Place]) -> set[Place]:
        """The places and all that lies in them."""
        found: set[Place] = set()
        todo = list(places)
        while todo:
            place = todo.pop()
            if place not in found:
                found.add(place)
                todo += self._closed(self._held.get(place, set()))
        return found

    def _unknown(self, type: T.Type) -> set[Place]:
        """The unknown of a type; unknown containers and objects may hold anything unknown."""
        return {("unknown", kind) for kind in kinds_of(type)}

    def _fresh(self, value: Value) -> set[Place]:
        """A place of a value's own."""
        kinds = kinds_of(value.type)
        if not kinds:
            return set()
        place = ("made", id(value))
        self._kind_of[place] = kinds[0]
        self._held.setdefault(place, set())
        return {place}

    def _contents(self, value: Value) -> set[Place]:
        found: set[Place] = set()
        for place in self._of(value):
            found |= self._held.get(place, set())
        return self._closed(found)

    def _place_of(self, value: Any, kind: str) -> Place:
        """The place of a constant. What lists, tuples and dictionaries hold has places, too;
        tensors over one memory have one.
        """
        memory = isinstance(value, Tensor) and isinstance(value._data, np.ndarray)
        place = ("constant", id(storage_of(value) if memory else value))
        self._kind_of[place] = kind
        if place in self._held:
            return place
        held: set[Place] = set()
        self._held[place] = held
        if isinstance(value, (list, tuple, dict)):
            parts = value.values() if isinstance(value, dict) else value
            held |= {self._place_of(part, part_kind) for part in parts
                     for part_kind in _kinds_of_object(part)}  # fmt: skip
        elif kind != "Tensor":
            held |= {("unknown", inner) for inner in KINDS}
        return place

    # ---- what becomes known

    def _add(self, value: Value, places: set[Place]) -> None:
        known = self._places.setdefault(value, set())
        if not places <= known:
            known |= places
            self._changed = True

    def _hold(self, containers: Iterable[Place], places: set[Place]) -> None:
        for container in containers:
            held = self._held.setdefault(container, set())
            if not places <= held:
                held |= places
                self._changed = True
            if container[0] == "unknown" or self._is_escaped(container):
                self._escape(places)

    def _is_escaped(self, place: Place) -> bool:
        return place in self._escaped.get(self._kind_of[place], ())

    def _escape(self, places: set[Place]) -> None:
        """Note that someone outside may know these places and all that lies in them."""
        for place in self._reach(places):
            known = self._escaped.setdefault(self._kind_of[place], set())
            if place not in known:
                known.add(place)
                self._changed = True

    def _write(self, node: Node, places: set[Place]) -> None:
        known = self._writes.setdefault(node, set())
        if not places <= known:
            known |= places
            self._changed = True


def _kinds_of_object(value: Any) -> tuple[str, ...]:
    """The kind of a Python object; none if it cannot be written to."""
    if isinstance(value, Tensor):
        return ("Tensor",)
    if isinstance(value, (list, tuple, dict)):
        return ("container",)
    unchanging = value is None or isinstance(value, (bool, int, float, complex, str))
    return () if unchanging else ("object",)


def kinds_of(type: T.Type) -> tuple[str, ...]:
    """The kinds of mutable things that a value of a type may be."""
    if type is T.TENSOR:  # most are
        return ("Tensor",)
    if not is_mutable(type):
        return ()
    if type.is_subtype_of(T.TENSOR):
        return ("Tensor",)
    if isinstance(type, (T.OptionalType, T.UnionType)):
        return tuple({kind for part in T.alternatives(type) for kind in kinds_of(part)})
    if isinstance(type, CONTAINERS):
        return ("container",)
    return KINDS if type == T.ANY else ("object",)
