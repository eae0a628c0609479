"""`allow_mutation_on_saved_tensors`: tensors that are saved may be written to.

What is saved within is kept as a `Handle`. Before a write to memory that a handle stands for, the
tensor is copied, once for all nodes that have saved it as it was; backward gets the copy.
"""

from __future__ import annotations

import weakref
from typing import Any

from flambeau._core import modes
from flambeau._core.layout import preserve_format
from flambeau._tensor.tensor import Counter, Tensor
from flambeau.autograd import history
from flambeau.autograd.graph import tools
from flambeau.autograd.saved import saved_tensors_hooks
from flambeau.autograd.versions import counter_of, rewritten, version_of

OUTSIDE = (
    "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the "
    "graph was originally recorded."
)
NESTED = "allow_mutation_on_saved_tensors contexts cannot be nested"


class Handle:
    """Stands for a saved tensor. `counter`: what counts the writes to its memory."""

    __slots__ = ("__weakref__", "counter")

    def __init__(self, counter: Counter) -> None:
        self.counter = counter


class Saved:
    """What was saved in a context: as it is (`original`), or as it was before a write (`cloned`).

    `tid_to_weakhandle`: the handle of a tensor at a version; `by_memory`: the handles of everything
    that was saved of a memory, by its counter of writes.
    """

    def __init__(self) -> None:
        self.original: Any = weakref.WeakKeyDictionary()
        self.cloned: Any = weakref.WeakKeyDictionary()
        self.tid_to_weakhandle: Any = weakref.WeakValueDictionary()
        self.by_memory: dict[int, Any] = {}

    def clear(self) -> None:
        """Forget everything."""
        for table in (self.original, self.cloned, self.tid_to_weakhandle, self.by_memory):
            table.clear()

    def pack(self, tensor: Tensor) -> Handle:
        """What nodes keep of a tensor."""
        counter = counter_of(tensor)
        root = tensor if tensor._root is None else tensor._root
        if not root._requires_grad:
            rewritten.add(root)
        tid = (id(tensor), id(counter), version_of(tensor))
        handle: Handle | None = self.tid_to_weakhandle.get(tid)
        if handle is None:
            handle = self.tid_to_weakhandle[tid] = Handle(counter)
            self.original[handle] = tensor
            self.by_memory.setdefault(id(counter), weakref.WeakSet()).add(handle)
        return handle

    def unpack(self, handle: Handle) -> Tensor:
        """The tensor as it was when it was saved."""
        if handle in self.cloned:
            return self.cloned[handle]  # type: ignore[no-any-return]
        if handle not in self.original:
            raise AssertionError(OUTSIDE)
        return self.original[handle]  # type: ignore[no-any-return]

    def before_write(self, tensor: Tensor) -> None:
        """Copy what was saved of the memory that is about to change."""
        root = tensor if tensor._root is None else tensor._root
        counter = root._counter
        if counter is None or id(counter) not in self.by_memory:
            return
        for handle in self.by_memory.pop(id(counter)):
            saved = self.original.pop(handle)
            with_grad, modes.grad.enabled = modes.grad.enabled, False
            try:
                self.cloned[handle] = tools.clone(saved, memory_format=preserve_format)
            finally:
                modes.grad.enabled = with_grad


class allow_mutation_on_saved_tensors:
    """Let tensors that are saved for backward be written to: backward gets them as they were.

    Backward passes must run within, too.

    >>> import flambeau as torch
    >>> x = torch.tensor([2.0], requires_grad=True)
    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = y ** 2
    ...     _ = y.zero_()
    ...     z.backward()
    >>> x.grad
    tensor([4.])
    """

    active = False

    def __enter__(self) -> Saved:
        if allow_mutation_on_saved_tensors.active:
            raise RuntimeError(NESTED)
        self.saved = saved = Saved()
        self.hooks = saved_tensors_hooks(saved.pack, saved.unpack)
        self.hooks.__enter__()
        allow_mutation_on_saved_tensors.active = True
        modes.watch.active += 1  # no short way is taken: all writes pass `check_inplace`
        modes.watch.results += 1
        history.on_write.append(saved.before_write)
        return saved

    def __exit__(self, *exc: object) -> None:
        history.on_write.remove(self.saved.before_write)
        modes.watch.results -= 1
        modes.watch.active -= 1
        allow_mutation_on_saved_tensors.active = False
        self.hooks.__exit__(*exc)
        self.saved.clear()
