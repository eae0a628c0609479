"""Modules that hold others: Sequential, ModuleList, ModuleDict."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeVar

from flambeau._core.nn_homes import shown_class
from flambeau.nn.module import Module

Self = TypeVar("Self", bound="Sequential")


class Container(Module):
    """The deprecated ancestor of Module's own attributes.

    What shapes it takes is up to its subclasses.

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # it is deprecated
    ...     both = torch.nn.Container(first=torch.nn.ReLU(), second=torch.nn.Tanh())
    >>> both
    Container(
      (first): ReLU()
      (second): Tanh()
    )
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is Container:
            warnings.warn(
                "`nn.Container` is deprecated. All of its functionality is now implemented in "
                "`nn.Module`. Subclass that instead.",
                FutureWarning,
                stacklevel=2,
            )
        return super().__new__(cls)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


def absolute_index(index: Any, length: int) -> int:
    """A list index as a number from 0; IndexError outside."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


def renumbered(modules: Iterable[Module | None]) -> OrderedDict[str, Module | None]:
    """Modules under the names "0", "1", ..."""
    return OrderedDict((str(place), module) for place, module in enumerate(modules))


def make_room(modules: dict[str, Any], index: int, count: int) -> None:
    """Move the modules from a place on up by one name, the last one first.

    They are found by number: where a child has another name, that is a KeyError.
    """
    for place in reversed(range(index, count)):
        modules[str(place + 1)] = modules[str(place)]


class Sequential(Module):
    """Modules called one after another, each on what the one before returned.

    Takes the shapes of its first module, and gives those of its last.

    They are given as arguments, or in an OrderedDict with names.

    >>> import flambeau as torch
    >>> torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    Sequential(
      (0): Linear(in_features=3, out_features=2, bias=True)
      (1): ReLU()
    )
    """

    _modules: dict[str, Module]  # type: ignore[assignment]

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = len(args) == 1 and isinstance(args[0], OrderedDict)
        modules = args[0] if named else renumbered(args)
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input

    def _name_at(self, index: Any) -> str:
        return list(self._modules)[absolute_index(index, len(self))]

    def __getitem__(self, idx: slice | int) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._name_at(idx)]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._name_at(idx), module)

    def __delitem__(self, idx: slice | int) -> None:
        if isinstance(idx, slice):
            for name in list(self._modules)[idx]:
                delattr(self, name)
        else:
            delattr(self, self._name_at(idx))
        self._modules = renumbered(self._modules.values())  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def __add__(self, other: Any) -> Sequential:
        _check_sequential(other)
        return Sequential(*self, *other)

    def __iadd__(self: Self, other: Any) -> Self:
        _check_sequential(other)
        return self.extend(other)

    def __mul__(self, other: int) -> Sequential:
        self._check_factor(other)
        return Sequential(*(module for _ in range(other) for module in self))

    __rmul__ = __mul__

    def __imul__(self: Self, other: int) -> Self:
        self._check_factor(other)
        modules = list(self)
        for _ in range(other - 1):
            self.extend(modules)
        return self

    def _check_factor(self, other: Any) -> None:
        if not isinstance(other, int):
            mine, others = shown_class(type(self)), shown_class(type(other))
            raise TypeError(f"unsupported operand type(s) for *: {mine} and {others}")
        if other <= 0:
            mine = shown_class(type(self))
            raise ValueError(f"Non-positive multiplication factor {other} for {mine}")

    def append(self: Self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self: Self, index: int, module: Module) -> Self:
        """Add a module before a place; those behind move up."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {shown_class(Module)}")
        count = len(self)
        if not -count <= index <= count:
            raise IndexError(f"Index out of range: {index}")
        place = index + count if index < 0 else index
        make_room(self._modules, place, count)
        self._modules[str(place)] = module
        return self

    def extend(self: Self, sequential: Iterable[Module]) -> Self:
        """Add several modules at the end."""
        for module in sequential:
            self.append(module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Remove and return a module."""
        found = self[key]
        del self[key]
        return found


def _check_sequential(other: Any) -> None:
    if not isinstance(other, Sequential):
        raise ValueError(
            "add operator supports only objects of Sequential class, but "
            f"{shown_class(type(other))} is given."
        )


class ModuleList(Module):
    """A list of modules, whose parameters count as its own.

    It is not called itself, and so has no shapes of its own.

    >>> import flambeau as torch
    >>> layers = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(3)])
    >>> len(layers), sum(p.numel() for p in layers.parameters())
    (3, 18)
    """

    _modules: dict[str, Module]  # type: ignore[assignment]

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _get_abs_string_index(self, idx: Any) -> str:
        return str(absolute_index(idx, len(self)))

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[self._get_abs_string_index(idx)]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._get_abs_string_index(idx), module)

    def __delitem__(self, idx: int | slice) -> None:
        if isinstance(idx, slice):
            for place in range(len(self))[idx]:
                delattr(self, str(place))
        else:
            delattr(self, self._get_abs_string_index(idx))
        self._modules = renumbered(self._modules.values())  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def __repr__(self) -> str:
        """As a Module's, with equal neighbours in one line."""
        texts = [repr(module) for module in self]
        if not texts:
            return f"{self._get_name()}()"
        groups: list[list[int]] = []
        for place, text in enumerate(texts):
            if groups and texts[groups[-1][0]] == text:
                groups[-1].append(place)
            else:
                groups.append([place])
        lines = []
        for group in groups:
            text = texts[group[0]].replace("\n", "\n  ")
            if len(group) > 1:
                lines.append(f"({group[0]}-{group[-1]}): {len(group)} x {text}")
            else:
                lines.append(f"({group[0]}): {text}")
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    def insert(self, index: int, module: Module) -> None:
        """Add a module before a place; those behind move up."""
        make_room(self._modules, index, len(self))
        self._modules[str(index)] = module

    def append(self, module: Module) -> ModuleList:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Remove and return a module."""
        found = self[key]
        del self[key]
        return found

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add several modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                f"{type(modules).__name__}"
            )
        for place, module in enumerate(modules, len(self)):
            self.add_module(str(place), module)
        return self


def pairs_of(given: Any, cls: str) -> list[tuple[str, Any]]:
    """The (name, value) pairs of a sequence, checked one by one."""
    pairs = []
    for place, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{cls} update sequence element #{place} should be Iterable; is"
                f"{type(pair).__name__}"
            )
        parts = tuple(pair)
        if len(parts) != 2:
            raise ValueError(
                f"{cls} update sequence element #{place} has length {len(parts)}; 2 is required"
            )
        pairs.append(parts)
    return pairs


class ModuleDict(Module):
    """A dict of modules, whose parameters count as its own; it keeps the order of insertion.

    It is not called itself, and so has no shapes of its own.

    >>> import flambeau as torch
    >>> parts = torch.nn.ModuleDict({"a": torch.nn.ReLU()})
    >>> parts["a"]
    ReLU()
    """

    _modules: dict[str, Module]  # type: ignore[assignment]

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove and return a module."""
        found = self[key]
        del self[key]
        return found

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Names and modules."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or from (name, module) pairs."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(modules).__name__}"
            )
        named = isinstance(modules, (Mapping, ModuleDict))
        for key, module in modules.items() if named else pairs_of(modules, "ModuleDict"):  # type: ignore[union-attr]
            self[key] = module
