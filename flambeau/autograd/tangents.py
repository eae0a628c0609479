"""Levels of forward mode: which tensors carry which tangents.

A level is one direction of derivation. Levels nest, the innermost last in `modes.stacks.levels`;
while an operator works on one of them, those further in are not looked at, so that the derivative
of a derivative is just what the operators of the inner one compute.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from flambeau._core import modes
from flambeau._runtime.cpu import element_strides
from flambeau._tensor.tensor import Tensor, constructors
from flambeau.autograd.grad_mode import set_grad_enabled
from flambeau.autograd.graph import SavedResult

NO_OUT = (
    "Trying to use forward AD with {}_out that does not support it because it is an out= function"
)
OTHER_SIZE = (
    "Trying to set a forward gradient that has a different size than that of the original Tensor, "
    "this is not supported. Tensor is of size {} while the given forward gradient is of size {}."
)


class Transform:
    """A transform of functions, for leaves that it has put in the place of others (`_stands_for`):
    once it is over, or has nothing to wait for, they count for nobody."""

    is_open = False


class Level:
    """One direction. A tensor keeps its tangents by level, and forgets them when it ends.

    With `is_recorded`, what happens to tangents is recorded in `no_grad`, too. `is_transform` says
    that it is one use of `torch.func.jvp`.
    """

    is_recorded = False
    is_transform = False

    def __init__(self) -> None:
        self.holders: list[weakref.ref[Tensor]] = []

    def tangent(self, tensor: Tensor) -> Any:
        """What a tensor carries, or as a view of what carries one; None if it carries none."""
        own = tensor._tangents
        if own is not None and self in own:
            return own[self]
        base = tensor._base
        whole = None if base is None or base._tangents is None else base._tangents.get(self)
        if whole is None:
            return None
        with self.recording():
            view = part_of(whole, base, tensor)
        self.put(tensor, view)
        return view

    def put(self, tensor: Tensor, tangent: Any) -> None:
        """Let a tensor carry a tangent, which lies in memory as the tensor does: what can be a view
        of the one can then be a view of the other."""
        if tangent is not None and not _lie_alike(tensor._data, tangent._data):
            with self.recording():
                room = tangent.new_empty_strided(tensor._data.shape, element_strides(tensor._data))
                tangent = room.copy_(tangent)
        if tensor._tangents is None:
            tensor._tangents = {}
        tensor._tangents[self] = tangent
        tell_node(tensor)
        self.holders.append(weakref.ref(tensor))

    def recording(self) -> Any:
        """A region in which what happens to its tangents is recorded where that is asked for."""
        return set_grad_enabled(True) if self.is_recorded else nullcontext()

    def knows(self, tensor: Tensor) -> bool:
        """Whether a tensor has to do with this level."""
        return self.tangent(tensor) is not None

    def refuses_out(self, tensors: Sequence[Tensor]) -> str:
        """The words with which `out=` is refused for some tensors; "" where it is not."""
        return NO_OUT if any(map(self.knows, tensors)) else ""

    def overwrite(self, tensor: Any, tangent: Any) -> None:
        """What an in-place operator has made of a tangent: all that shares its memory sees it.
        None stands for zeros."""
        with self.recording():
            self._overwritten(tensor, tangent)

    def _overwritten(self, tensor: Any, tangent: Any) -> None:
        have: Any = self.tangent(tensor)
        if have is None and tangent is None:
            return
        if have is None and tensor._base is not None:
            base = tensor._base
            self.put(base, base.detach().new_zeros(()).expand_as(base).clone())
            have = self.tangent(tensor)
        if have is None:
            self.put(tensor, tangent)
            return
        if tangent is None:
            tangent = have.detach().new_zeros(have.shape)
        if have.requires_grad or tangent.requires_grad or modes.stacks.levels:
            self._renew(have, tangent)
        else:
            have.copy_(tangent)
        tell_node(tensor)

    def _renew(self, have: Any, tangent: Any) -> None:
        """New tangents for all that share the memory of one: what was computed from the old one has
        a history that needs it as it is."""
        from flambeau.autograd.batches import spread

        whole = have if have._base is None else have._base
        renewed = spread(whole.clone(), tangent)
        part = renewed if have is whole else part_of(renewed, whole, have)
        part.copy_(tangent)
        for holder in self.holders:
            tensor = holder()
            old = None if tensor is None or tensor._tangents is None else tensor._tangents.get(self)
            if old is whole:
                tensor._tangents[self] = renewed  # type: ignore[union-attr,index]
            elif old is not None and old._base is whole:
                tensor._tangents[self] = part_of(renewed, whole, old)  # type: ignore[union-attr,index]

    @contextmanager
    def apart(self) -> Iterator[None]:
        """A region in which neither this level nor one further in is looked at."""
        levels = modes.stacks.levels
        modes.stacks.levels = levels[: levels.index(self)] if self in levels else levels
        try:
            yield
        finally:
            modes.stacks.levels = levels

    def end(self) -> None:
        """Take all tangents away."""
        modes.stacks.levels = [level for level in modes.stacks.levels if level is not self]
        modes.watch.active -= 1
        modes.watch.results -= 1
        for holder in self.holders:
            tensor = holder()
            if tensor is not None and tensor._tangents is not None:
                tensor._tangents.pop(self, None)
        self.holders.clear()


def hand_on(source: Tensor, target: Tensor) -> None:
    """A tensor becomes what another one is: it carries the same tangents."""
    target._tangents = None
    for level, tangent in (source._tangents or {}).items():
        level.put(target, tangent)


def copy_tangents(source: Tensor, target: Tensor) -> None:
    """A copy of a tensor carries copies of its tangents, and of theirs, whichever levels are looked
    at."""
    for level, tangent in (source._tangents or {}).items():
        copied = None if tangent is None else tangent.clone()
        if copied is not None:
            copy_tangents(tangent, copied)
        level.put(target, copied)


def tell_node(tensor: Tensor) -> None:
    """The node that made a tensor may have saved it, and makes another like it for its formulas."""
    node = getattr(tensor._node, "source", tensor._node)
    for kept in getattr(node, "saved", None) or ():
        if isinstance(kept, SavedResult) and kept.data is tensor._data:
            kept.tangents = tensor._tangents


def _lie_alike(one: Any, other: Any) -> bool:
    steps = [[step // a.itemsize for step, n in zip(a.strides, a.shape, strict=True) if n > 1]
             for a in (one, other)]  # fmt: skip
    return 0 in one.strides or 0 in one.shape or steps[0] == steps[1]


def part_of(whole: Any, base: Any, view: Any) -> Any:
    """The part of a base's tangent that belongs to a view of the base."""
    start = view.storage_offset() - base.storage_offset() + whole.storage_offset()
    return whole.as_strided(view.shape, view.stride(), start)


def new_level() -> Level:
    """Begin a level in this thread."""
    constructors["carry_tangents"]()
    level = Level()
    modes.stacks.levels = [*modes.stacks.levels, level]
    modes.watch.active += 1
    modes.watch.results += 1
    return level


def without_graph(tensor: Any, of_tangent: Any = None) -> Any:
    """The values of a tensor, with the tangents that it carries: as they are, or what a function
    makes of them."""
    plain = tensor.detach()
    for level in modes.stacks.levels:
        tangent = level.tangent(tensor)
        if tangent is not None:
            level.put(plain, tangent if of_tangent is None else of_tangent(tangent))
    return plain


def overwrite(target: Tensor, source: Tensor | None) -> None:
    """A tensor was overwritten with another one, cast and broadcast, or with constants."""
    for level in modes.stacks.levels:
        tangent = None if source is None else level.tangent(source)
        with level.apart(), level.recording():
            level.overwrite(target, _cast(tangent, target))


def _cast(tangent: Any, target: Tensor) -> Any:
    if tangent is None or target._data.dtype.kind not in "fcVW":
        return None
    return tangent.to(target.dtype).expand(target.shape).clone()
