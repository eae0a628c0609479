"""`torch.utils._ordered_set`: a set that keeps the order in which elements came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet, Reversible
from typing import Any, TypeVar

T = TypeVar("T")


class OrderedSet(MutableSet[T], Reversible[T]):
    """A set whose elements are seen in the order in which they were added.

    >>> from flambeau.utils._ordered_set import OrderedSet
    >>> OrderedSet([3, 1, 3]) | [2]
    OrderedSet([3, 1, 2])
    """

    __slots__ = ("_dict",)

    def __init__(self, iterable: Iterable[T] | None = None) -> None:
        self._dict: dict[T, None] = dict.fromkeys(iterable if iterable is not None else ())

    def __contains__(self, elem: object) -> bool:
        return elem in self._dict

    def __iter__(self) -> Iterator[T]:
        return iter(self._dict)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)})"

    def __getstate__(self) -> list[T]:
        return list(self)

    def __setstate__(self, state: Iterable[T]) -> None:
        self._dict = dict.fromkeys(state)

    def add(self, elem: T) -> None:
        """Add an element, at the end if it is new."""
        self._dict[elem] = None

    def discard(self, elem: T) -> None:
        """Remove an element, if it is there."""
        self._dict.pop(elem, None)

    def clear(self) -> None:
        """Remove all elements."""
        self._dict.clear()

    def pop(self) -> T:
        """Remove the element that came last, and return it.

        Raises:
            KeyError: the set is empty.
        """
        return self._dict.popitem()[0]

    def copy(self) -> OrderedSet[T]:
        """Another set with the same elements."""
        return type(self)(self)

    def difference(self, *others: Iterable[T]) -> OrderedSet[T]:
        """The elements that are in none of the others."""
        result = self.copy()
        result.difference_update(*others)
        return result

    def difference_update(self, *others: Iterable[T]) -> None:
        """Remove the elements of the others."""
        for other in others:
            for elem in list(other):
                self.discard(elem)

    def intersection(self, *others: Iterable[T]) -> OrderedSet[T]:
        """The elements that are in all of the others, too."""
        result = self.copy()
        result.intersection_update(*others)
        return result

    def intersection_update(self, *others: Iterable[T]) -> None:
        """Remove the elements that one of the others lacks."""
        for other in others:
            kept = set(other)
            self._dict = {elem: None for elem in self if elem in kept}

    def symmetric_difference(self, other: Iterable[T]) -> OrderedSet[T]:
        """The elements that are in one of both only."""
        result = self.copy()
        result.symmetric_difference_update(other)
        return result

    def symmetric_difference_update(self, other: Iterable[T]) -> None:
        """Remove what is in the other, too, and add what is in the other only."""
        theirs = type(self)(other)
        both = [elem for elem in self if elem in theirs]
        self.update(theirs)
        self.difference_update(both)

    def union(self, *others: Iterable[T]) -> OrderedSet[T]:
        """The elements of all."""
        result = self.copy()
        result.update(*others)
        return result

    def update(self, *others: Iterable[T]) -> None:
        """Add the elements of the others."""
        for other in others:
            self._dict.update(dict.fromkeys(other))

    def issubset(self, other: Iterable[T]) -> bool:
        """Whether all elements are in the other."""
        theirs = set(other)
        return all(elem in theirs for elem in self)

    def issuperset(self, other: Iterable[T]) -> bool:
        """Whether all elements of the other are here."""
        return all(elem in self for elem in other)

    def __or__(self, other: Any) -> OrderedSet[Any]:
        return self.union(other)

    def __and__(self, other: Any) -> OrderedSet[T]:
        return self.intersection(other)

    def __sub__(self, other: Any) -> OrderedSet[T]:
        return self.difference(other)

    def __xor__(self, other: Any) -> OrderedSet[Any]:
        return self.symmetric_difference(other)
