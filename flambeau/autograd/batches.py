"""Levels of `vmap`: tensors that stand for one example of a batch.

In a function that is mapped over a batch a tensor stands for all examples alike: it has the shape,
strides, type and history of one, and no numbers that could be looked at. The batch lies beside it,
examples along the first dim. Operators work on batches (`_ops.transforms.batching`); the graph that
they record inside is one of tensors that stand for examples, so backward inside of the function is
batched as well, and the graph of the batches belongs to whoever called.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._tensor.examples import NO_NUMBERS, Example
from flambeau._tensor.tensor import Tensor, constructors, new
from flambeau.autograd.tangents import Level, hand_on, part_of

NO_OUT = "Batching rule not implemented for aten::{}.out; the fallback path doesn't work on out= or view ops."  # fmt: skip  # noqa: E501
TOO_SMALL = (
    "vmap: {0}(self, *extra_args) is not possible because there exists a Tensor `other` in "
    "extra_args that has more elements than `self`. This happened due to `other` being vmapped "
    "over but `self` not being vmapped over in a vmap. Please try to use out-of-place operators "
    "instead of {0}. If said operator is being called inside the PyTorch framework, please file a "
    "bug report instead."
)
NOT_BATCHED = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear "
    "like same randomness. If this is necessary for your usage, please file an issue with "
    "functorch."
)
REFUSED = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
    "'different' randomness flags on vmap or perform the randomness operation out of vmap"
)


class Batch(Level):
    """One use of `vmap`: how many examples there are, and whether random numbers are refused
    ("error"), the same for all examples ("same"), or drawn for each ("different")."""

    def __init__(self, size: int, randomness: str = "error") -> None:
        super().__init__()
        self.size, self.randomness = size, randomness
        self.taken: list[tuple[Any, Any]] = []
        """Tensors that were taken in, with their arrays outside."""

    def tangent(self, tensor: Tensor) -> None:
        """Nothing is derived here."""
        return

    def example(self, tensor: Tensor) -> Example | None:
        """The array of a tensor that stands for examples of this batch; None for others."""
        try:
            data = tensor._data
        except AttributeError:  # sparse tensors have none
            return None
        if data.__class__ is not Example:
            return None
        if data.level is None:
            raise RuntimeError(NO_NUMBERS)
        return data if data.level is self else None  # type: ignore[attr-defined]

    def take_in(self, tensor: Any) -> None:
        """Let a tensor that is the same for all examples stand for itself in here: what learns in
        here is written to it, and graphs outside may not know that. Its history until now stays
        outside, with another tensor over the same memory. At the end both are joined again.
        """
        if self.example(tensor) is not None:
            return
        base = tensor._base
        if base is None:
            self._put_inside(tensor, self._moved_out(tensor))
            return
        self.take_in(base)
        with self.apart():
            outside = part_of(self.example(base).value, base, tensor)  # type: ignore[union-attr]
        tensor._node, tensor._requires_grad = None, False
        self._put_inside(tensor, outside)

    def _moved_out(self, tensor: Any) -> Any:
        """Another tensor with the memory and history of one, which forgets that."""
        outside: Any = new(Tensor)
        outside._data = tensor._data
        outside._node, outside._requires_grad = tensor._node, tensor._requires_grad
        tensor._node, tensor._requires_grad = None, False
        levels = modes.stacks.levels
        own = tensor._tangents or {}
        for level in levels[: levels.index(self)]:
            if level in own:
                level.put(outside, own.pop(level))
        return outside

    def _put_inside(self, tensor: Any, outside: Any) -> None:
        levels = modes.stacks.levels
        outer = [b for b in levels[: levels.index(self)] if isinstance(b, Batch)]
        self.taken.append((tensor, outside))
        tensor._data = self.standing_for(_inside(outside, outer), is_batched=False)._data

    def end(self) -> None:
        """Take all tangents away, and give back what was taken in."""
        super().end()
        for tensor, outside in self.taken:
            tensor._data = outside._data
            tensor._node, tensor._requires_grad = outside._node, outside._requires_grad
            tensor._tangents = {**(tensor._tangents or {}), **(outside._tangents or {})} or None

    def knows(self, tensor: Tensor) -> bool:
        """Whether a tensor stands for examples of this batch."""
        return self.example(tensor) is not None

    def refuses_out(self, tensors: Sequence[Tensor]) -> str:
        """The words with which `out=` is refused for some tensors; "" where it is not."""
        return NO_OUT if any(map(self.knows, tensors)) else ""

    def standing_for(self, value: Any, is_batched: bool = True) -> Tensor:
        """A tensor for one example of `value`, whose first dim is that of the examples."""
        if value._stored is not None:
            value = value.resolve_conj().resolve_neg()
        result: Tensor = new(Tensor)
        data = result._data = example_of(value._data, is_batched)
        data.level, data.value, data.is_batched = self, value, is_batched
        return result


def example_of(array: np.ndarray, is_batched: bool) -> Example:
    """The array of a tensor that stands for one example of `array`."""
    plain = array.view(np.ndarray)
    if not is_batched:
        return plain.view(Example)
    if plain.shape[0]:
        return plain[0, ...].view(Example)
    found = np.lib.stride_tricks.as_strided(np.zeros(1, plain.dtype), plain.shape[1:],
                                            plain.strides[1:], writeable=False)  # fmt: skip
    return found.view(Example)


@contextmanager
def batched(size: int, randomness: str) -> Iterator[Batch]:
    """A level in this thread, for as long as a function runs."""
    constructors["carry_tangents"]()
    level = Batch(size, randomness)
    constructors["expect_batches"]()
    modes.stacks.levels = [*modes.stacks.levels, level]
    modes.stacks.refusals += randomness == "error"
    modes.watch.active += 1
    modes.watch.results += 1
    try:
        yield level
    finally:
        modes.stacks.refusals -= randomness == "error"
        level.end()


def innermost(*tensors: Tensor) -> Any:
    """The innermost level on which one of the tensors stands for examples, or None."""
    for level in reversed(modes.stacks.levels):
        if isinstance(level, Batch) and any(map(level.knows, tensors)):
            return level
    return None


def check_alone(target: Tensor) -> None:
    """Random numbers cannot differ from example to example in what is the same for all."""
    levels = [level for level in modes.stacks.levels if isinstance(level, Batch)]
    if levels and levels[-1].randomness == "different":
        raise RuntimeError(NOT_BATCHED)


def inside(value: Any) -> Any:
    """A tensor as it is to be seen in the functions that are being mapped: what learns there, and
    nowhere outside, may not be known by the graphs of the batches."""
    return _inside(value, [level for level in modes.stacks.levels if isinstance(level, Batch)])


def _inside(value: Any, levels: Sequence[Batch]) -> Any:
    if not levels:
        return value
    *outer, level = levels
    found = level.example(value)
    if found is None:
        seen = level.standing_for(_inside(value, outer), is_batched=False)
        hand_on(value, seen)
        return seen
    whole = _inside(found.value, outer)
    if whole is found.value:
        return value
    seen = value.view_as(value) if value.requires_grad else new(Tensor)  # with its history
    seen._data = level.standing_for(whole, found.is_batched)._data
    hand_on(value, seen)
    return seen


def spread(tensor: Any, like: Any) -> Any:
    """A tensor with examples wherever another one has some, so that this can be written to it."""
    for level in modes.stacks.levels:
        if isinstance(level, Batch) and _is_batched(level, like) and not _is_batched(level, tensor):
            with level.apart():
                zeros = tensor.detach().new_zeros([level.size, *tensor.shape])
            tensor = tensor + level.standing_for(zeros)
    return tensor


def _is_batched(level: Batch, tensor: Any) -> bool:
    """Whether what a tensor stands for, on any level, differs from example to example of one."""
    data = tensor._data
    while data.__class__ is Example:
        if data.level is level:
            return data.is_batched  # type: ignore[no-any-return]
        data = data.value._data
    return False


def learning(tensor: Any) -> Any:
    """A leaf of a transform's own, which learns from now on."""
    constructors["set_requires_grad"](tensor, True)
    return tensor
