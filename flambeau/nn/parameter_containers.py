"""Modules that hold parameters: ParameterList and ParameterDict."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn.containers import absolute_index, pairs_of
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter


def _as_parameter(value: Any) -> Any:
    """Tensors become Parameters; anything else stays."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _line(key: Any, value: Any, element: str) -> str:
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(map(str, value.shape))
    return f"  ({key}): {kind} containing: [{element} of size {size}]"


class ParameterList(Module):
    """A list of parameters; tensors put in become Parameters, other values are kept.

    Each has a shape of its own; the list is not called.

    >>> import flambeau as torch
    >>> held = torch.nn.ParameterList([torch.zeros(2), torch.zeros(3)])
    >>> [p.shape for p in held]
    [torch.Size([2]), torch.Size([3])]
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _get_abs_string_index(self, idx: Any) -> str:
        return str(absolute_index(idx, len(self)))

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            made = type(self)()
            for place in range(*idx.indices(len(self))):
                made.append(self[place])
            return made
        return getattr(self, self._get_abs_string_index(idx))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, self._get_abs_string_index(idx), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[place] for place in range(len(self)))

    def __iadd__(self, parameters: Iterable[Any]) -> ParameterList:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end."""
        place = len(self)
        self._size += 1
        self[place] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add several values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                f"{type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        elements = (getattr(value, "dtype", "") for value in self)
        lines = [
            _line(place, value, str(element))
            for (place, value), element in zip(enumerate(self), elements, strict=True)
        ]
        return "\n".join(lines)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


def _pairs_in_order(parameters: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    """Mappings whose order means nothing by contract are sorted, the others keep theirs."""
    if isinstance(parameters, (OrderedDict, ParameterDict)):
        return parameters.items()
    if isinstance(parameters, Mapping):
        return sorted(parameters.items())
    return pairs_of(parameters, "ParameterDict")


class ParameterDict(Module):
    """A dict of parameters; tensors put in become Parameters, other values are kept.

    Each has a shape of its own; the dict is not called.

    >>> import flambeau as torch
    >>> weights = torch.nn.ParameterDict({"one": torch.zeros(2), "two": torch.ones(3)})
    >>> list(weights), weights["two"].requires_grad
    (['one', 'two'], True)
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}'). Open an issue on github if you need "
                "non-string keys."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = None
        setattr(self, self._key_to_attr(key), _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """A new ParameterDict with the same values."""
        return ParameterDict(self)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key, which is added if it is missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove everything."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove and return a value."""
        found = self[key]
        del self[key]
        return found

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the last pair."""
        key, _ = self._keys.popitem()
        # `pop` expects the key among the others.
        self._keys[key] = None
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or `default`."""
        return self[key] if key in self else default  # noqa: SIM401

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new ParameterDict with one value under several keys."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Any:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Keys and values."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add values from a mapping or from (key, value) pairs."""
        if not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but "
                f"got {type(parameters).__name__}"
            )
        for key, value in _pairs_in_order(parameters):
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(_line(key, value, ops.typename(value)) for key, value in self.items())

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: Any) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: Any) -> Any:
        merged = other.copy()
        merged.update(self)
        return merged

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self
