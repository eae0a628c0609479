"""`torch.utils.weak`: dictionaries of objects, by identity, that don't keep them alive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from copy import deepcopy
from typing import Any
from weakref import ref

from flambeau._tensor.tensor import Tensor


class WeakIdRef(ref):  # type: ignore[type-arg]
    """A weak reference that is equal to others of the same object, whatever the object says.

    key: the object; callback: called with the reference when the object is gone.

    >>> import flambeau as torch
    >>> from flambeau.utils.weak import WeakIdRef
    >>> x = torch.ones(2)
    >>> WeakIdRef(x) == WeakIdRef(x), WeakIdRef(x) == WeakIdRef(x.clone()), WeakIdRef(x)() is x
    (True, False, True)
    """

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WeakIdRef):
            return NotImplemented
        mine, others = self(), other()
        return mine is others if mine is not None and others is not None else self is other

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal


class TensorWeakRef:
    """A weak reference to a tensor, to be called."""

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary by identity; the entry of an object goes with it."""

    def __init__(self, dict: Mapping[Any, Any] | None = None, ref_type: Any = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        if dict is not None:
            self.update(dict)

    def _forget(self, reference: Any) -> None:
        self.data.pop(reference, None)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # it cannot be referred to
            return False

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def keyrefs(self) -> list[Any]:
        """Weak references to the keys; any of them may be gone by now."""
        return list(self.data)

    def popitem(self) -> tuple[Any, Any]:
        """Take out the youngest key that is still there, with its value."""
        for reference in reversed(self.keyrefs()):
            key = reference()
            if key is not None:
                return key, self.data.pop(reference)
        raise KeyError("popitem(): dictionary is empty")

    def __or__(self, other: Any) -> Any:
        """The entries of both in a new dictionary; where a key is in both, those of `other`."""
        if not isinstance(other, Mapping):
            return NotImplemented
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        result = type(self)(other, self.ref_type)
        result.update(self)
        return result

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def copy(self) -> WeakIdKeyDictionary:
        """The same entries in a new dictionary."""
        return WeakIdKeyDictionary(self, self.ref_type)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> WeakIdKeyDictionary:
        result = type(self)(ref_type=self.ref_type)
        for key, value in self.items():
            result[key] = deepcopy(value, memo)
        return result


WeakTensorKeyDictionary = WeakIdKeyDictionary
