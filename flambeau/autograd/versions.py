"""How often a memory was written to: what nodes compare before they trust what they saved.

The count belongs to all tensors over one memory that share it (views, `detach`); it is a field of
their root, because most tensors are never saved and a field costs nothing. A node that saves its
own result may not keep the result alive: it would keep itself alive. It keeps the `Counter` of the
result's root instead, which every later write to the memory moves on and which outlives the root.

A root that has a counter requires grad, or is `rewritten`: the short ways of operators look at
those two only, and leave the write to `bump` then.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from flambeau._core import modes
from flambeau._tensor.tensor import Counter, Tensor, new


class Rewritten:
    """How many living tensors have a history, or a counter, that their flags do not tell of.

    Most started without grad and gained history from an in-place write: their views may still look
    as if they needed no grad. While `count` is 0, nobody has to check.
    """

    __slots__ = ("count", "refs")

    def __init__(self) -> None:
        self.count = 0
        self.refs: dict[int, Any] = {}

    def add(self, base: Tensor) -> None:
        key = id(base)
        if key in self.refs:
            return
        self.count += 1
        modes.watch.results += 1
        self.refs[key] = weakref.ref(base, lambda _: self.discard(key))

    def discard(self, key: int) -> None:
        if self.refs.pop(key, None) is not None:
            self.count -= 1
            modes.watch.results -= 1


rewritten = Rewritten()


class CutOff:
    """Tensors that lost their history by `detach_`, and the number of the next node then: nodes
    with lower ones may have saved them with it.
    """

    __slots__ = ("numbers", "refs")

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.refs: dict[int, Any] = {}

    def add(self, tensor: Tensor, number: int) -> None:
        key = id(tensor)
        self.numbers[key] = number
        self.refs[key] = weakref.ref(tensor, lambda _: self._discard(key))

    def _discard(self, key: int) -> None:
        self.numbers.pop(key, None)
        self.refs.pop(key, None)

    def check(self, tensor: Tensor, number: int) -> None:
        """Refuse formulas a tensor that node `number` saved before."""
        if number < self.numbers.get(id(tensor), 0):
            raise RuntimeError(
                "Trying to use a saved tensor that has been detached in-place, i.e. with "
                ".detach_().This is not supported, please use out-of-place `.detach()` instead"
            )


cut_off = CutOff()


def version_of(tensor: Tensor) -> int:
    """The count of in-place writes to the memory of a tensor."""
    root = tensor._root
    return tensor._version_count if root is None else root._version_count


def bump(tensor: Tensor) -> None:
    """Count a write to the memory of a tensor."""
    root = tensor._root
    if root is None:
        root = tensor
    root._version_count += 1
    counter = root._counter
    if counter is not None:
        counter.count += 1


def increment_version(tensor: Any) -> None:
    """Count a write that was made behind autograd's back, to one tensor or to several.

    >>> import flambeau as torch
    >>> x = torch.ones(1)
    >>> torch.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    if isinstance(tensor, Tensor):
        tensor = (tensor,)
    elif not isinstance(tensor, Iterable):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for one in tensor:
        bump(one)


def set_version(tensor: Tensor, count: int) -> None:
    """Let the count of writes to the memory of a tensor be another."""
    root = tensor if tensor._root is None else tensor._root
    root._version_count = count
    if root._counter is not None:
        root._counter.count = count


def counter_of(tensor: Tensor) -> Counter:
    """What goes on counting the writes to the memory of a tensor once all over it are gone."""
    root = tensor._root
    if root is None:
        root = tensor
    elif not root._requires_grad:
        rewritten.add(root)
    counter: Counter | None = root._counter
    if counter is None:
        counter = root._counter = new(Counter)
        counter.count = root._version_count
    return counter


def share_count(source: Tensor, tensor: Tensor, *, held: bool) -> None:
    """Let a new tensor over the memory of another one count its writes together with it.

    A source that has no root gets the new tensor as its root, not the other way round: parameters
    are what is used most, and a root is what operators are quickest with. held: not so where others
    hold the source. They may be views and aliases of it, whose root it is.
    """
    if source._root is not None or held:
        tensor._root = source if source._root is None else source._root
        return
    if source._version_count:
        tensor._version_count = source._version_count
    if source._counter is not None:
        tensor._counter = source._counter
        rewritten.add(tensor)
    source._root = tensor


def stop_requiring_grad(tensor: Tensor) -> None:
    """Take the flag off a tensor, whose memory a node may have saved nevertheless."""
    tensor._requires_grad = False
    if tensor._counter is not None:
        rewritten.add(tensor)
