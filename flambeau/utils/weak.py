"""`torch.utils.weak`: dictionaries of objects, by identity, that don't keep them alive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any
from weakref import ref

from flambeau._tensor.tensor import Tensor


class WeakIdRef:
    """A weak reference that is equal to others of the same object, whatever the object says.

    key: the object; callback: called when it is gone.
    """

    def __init__(self, key: Any, callback: Any = None) -> None:
        self._id = id(key)
        self._ref = ref(key, (lambda _: callback(self)) if callback is not None else None)

    def __call__(self) -> Any:
        """The object; None once it is gone."""
        return self._ref()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WeakIdRef):
            return NotImplemented
        mine, others = self(), other()
        return mine is others if mine is not None and others is not None else self is other


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

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def copy(self) -> WeakIdKeyDictionary:
        """The same entries in a new dictionary."""
        return WeakIdKeyDictionary(self, self.ref_type)

    __copy__ = copy


WeakTensorKeyDictionary = WeakIdKeyDictionary
