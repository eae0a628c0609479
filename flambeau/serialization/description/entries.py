"""What a description is made of: tensors and storages as a file presents them, without data."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class StorageEntry:
    """The bytes under one or more tensors.

    `numel` and `itemsize` are what the pickle says (`itemsize` None: an element type that flambeau
    does not know); `nbytes` is what the file holds.
    """

    key: str
    dtype: str
    itemsize: int | None
    numel: int
    location: str
    nbytes: int


@dataclass(frozen=True, slots=True, eq=False)
class TensorEntry:
    """A tensor. `shape`, `stride` and `offset` count elements; the storage None: none in the file.

    `kind` is the class: "Tensor", "Parameter" or the full name of a subclass.
    """

    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None = None
    offset: int = 0
    storage: StorageEntry | None = None
    requires_grad: bool = False
    kind: str = "Tensor"

    @property
    def numel(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes that the elements take when they lie close together."""
        return self.numel * self.itemsize

    def problem(self) -> str | None:
        """What is wrong with its place in the storage; None if all its elements lie inside."""
        if self.storage is None or self.stride is None or self.numel == 0:
            return None
        steps = zip(self.shape, self.stride, strict=True)
        last = self.offset + sum((size - 1) * step for size, step in steps)
        needed = (last + 1) * self.itemsize
        if needed <= self.storage.nbytes:
            return None
        return (
            f"sizes {list(self.shape)}, strides {list(self.stride)} and offset {self.offset} need "
            f"{needed} bytes, storage {self.storage.key} has {self.storage.nbytes}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """A class or function that the file names; nothing was imported."""

    name: str


@dataclass(slots=True, eq=False)
class Instance:
    """What a call would have made: an object of a class of which nothing is known."""

    kind: str
    arguments: tuple[Any, ...] = ()
    state: Any = None
    items: list[Any] = field(default_factory=list)
    pairs: list[tuple[Any, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Description:
    """What a file holds.

    `kind` says in words which format it is, `content` is the object with entries in the place of
    tensors, `refused` the globals that a safe load would not accept, `facts` what else is worth
    a line.
    """

    kind: str
    content: Any
    storages: list[StorageEntry]
    refused: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    methods: dict[str, list[str]] = field(default_factory=dict)
