"""Copies of arguments: what shared memory still does, views are views, and leaves are leaves."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from flambeau._tensor.attributes import fields_of
from flambeau._tensor.interop import copied_memory
from flambeau._tensor.sparse import NotStrided
from flambeau._tensor.tensor import Tensor, new
from flambeau.autograd.graph import Node
from flambeau.jit.optimise.sharing import tensors_in


class NotCopied(Exception):
    """Arguments that cannot be copied with all that programs can see of them."""


class Given(Node):
    """The history of a copy whose original was computed: gradients go to a leaf."""

    __slots__ = ()
    title = "Given"
    sequence_number: int

    def apply(self, grad: Any) -> tuple[Any, ...]:
        """The gradient as it comes."""
        return (grad,)


class Copies:
    """Copies of values. `tensors`: all tensors in them, `leaves`: where their gradients end."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.memo: dict[int, Any] = {}
        self.tensors: list[Tensor] = []
        self.leaves: list[Tensor] = []
        originals = list(dict.fromkeys(_with_bases(tensors_in(values))))
        for tensor in originals:
            self.tensors.append(self._tensor(tensor))
        for tensor in originals:
            self._relate(tensor)
        try:
            self.values = [copy.deepcopy(value, self.memo) for value in values]
        except Exception as error:
            raise NotCopied(f"{type(error).__name__}: {error}") from error

    def _tensor(self, tensor: Tensor) -> Tensor:
        """A tensor over a copy of its memory, related to nothing yet."""
        if tensor.__class__ is not Tensor and not tensor._is_param:
            raise NotCopied(f"a {type(tensor).__name__}")
        made = new(type(tensor))
        try:
            made._data = copied_memory(tensor, self.memo)
        except (NotStrided, TypeError) as error:
            raise NotCopied("memory that is not the CPU's") from error
        for name in ("_version_count", "_creation", "_inference", "_is_param", "_requires_grad"):
            if name in fields_of(tensor):
                fields_of(made)[name] = fields_of(tensor)[name]
        self.memo[id(tensor)] = made
        return made  # type: ignore[no-any-return]

    def _relate(self, tensor: Tensor) -> None:
        """Tell a copy which copies it belongs to, and where its gradient goes."""
        made = self.memo[id(tensor)]
        if tensor._root is not None:
            made._root = self.memo[id(tensor._root)]
        if tensor._base is not None:
            made._base = self.memo[id(tensor._base)]
            made._view_version = -1  # its history begins at the copied base
        if tensor._node is not None and (tensor._base is None or not tensor._base.requires_grad):
            leaf = new(Tensor)
            leaf._data, leaf._requires_grad = made._data, True
            made._node = Given(leaf)
            self.leaves.append(leaf)
        elif tensor._requires_grad and tensor._node is None:
            self.leaves.append(made)


def _with_bases(tensors: Iterator[Tensor]) -> Iterator[Tensor]:
    for tensor in tensors:
        yield tensor
        for other in (tensor._base, tensor._root):
            if other is not None:
                yield other
