"""What `gradcheck(check_batched_grad=True)` asks: whether backward could run for a batch of
gradients at once.

It could not where it looks at the numbers of a gradient, writes what depends on it into memory of
one gradient's size, or draws random numbers. One backward pass finds that out: all that depends on
the gradient is followed through it, and asked for its numbers by the program it refuses.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from flambeau._core.generator import default_generator
from flambeau._core.modes import Observer, observing
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.backward import grad
from flambeau.autograd.backward_checks import GradcheckError

OURS = (str(Path(__file__).parents[1]), "<flambeau", "<torchscript")
"""Beginnings of the file names of flambeau's own frames."""

FAILED = (
    "While computing batched gradients, got: {}\n\nThe backward of this function cannot run for "
    "several gradients at once. `check_batched_grad=False` leaves this check out.\n"
)
NO_RULE = "Batching rule not implemented for aten::{}. We could not generate a fallback."
NO_MEMORY = "Cannot access data pointer of Tensor that doesn't have storage"
NO_DRAWING = (
    "vmap: We do not yet support calling random operations inside of vmap. Please perform random "
    "operations outside of vmap as a workaround"
)
TOO_SMALL = (
    "vmap: aten::{0}(self, *extra_args) is not possible because there exists a Tensor `other` in "
    "extra_args that has more elements than `self`. This happened due to `other` being vmapped "
    "over but `self` not being vmapped over at level 1. Please try to use out-of-place operators "
    "instead of aten::{0}. If said operator is being called inside the PyTorch framework, please "
    "file a bug report instead."
)

LOOKS = {
    "item": NO_RULE.format("item"), "__float__": NO_RULE.format("item"),
    "__int__": NO_RULE.format("item"), "__index__": NO_RULE.format("item"),
    "__complex__": NO_RULE.format("item"), "__bool__": NO_RULE.format("is_nonzero"),
    "is_nonzero": NO_RULE.format("is_nonzero"), "tolist": NO_MEMORY, "numpy": NO_MEMORY,
    "__array__": NO_MEMORY, "data_ptr": NO_MEMORY,
}  # fmt: skip
"""Methods that give numbers of one gradient, and why a batch has none."""

WRITES = (
    "__setitem__ addbmm_ addmm_ addmv_ addr_ baddbmm_ copy_ fill_ index_add_ index_copy_ "
    "index_fill_ index_put_ index_reduce_ masked_fill_ masked_scatter_ put_ scatter_ scatter_add_ "
    "scatter_reduce_"
).split()
"""Methods that write, of which observers are not told."""

FACTORIES = "new_empty new_empty_strided new_full new_ones new_zeros".split()
"""Methods that make a tensor for each gradient of a batch, of which observers are not told."""

COMPARISONS = ("equal", "allclose")
"""Operators whose result is one bool."""


class BatchRefused(RuntimeError):
    """Something was asked of a batch that only one gradient can answer."""


def check_batched(outputs: list[Tensor], inputs: list[Tensor]) -> None:
    """Each output's backward could run for a batch of gradients. GradcheckError otherwise."""
    for output in outputs:
        start, _ = directions(output)
        before = default_generator.get_state()
        try:
            with Following(start):
                grad(output, inputs, start, retain_graph=True, allow_unused=True)
        except RuntimeError as error:
            raise GradcheckError(FAILED.format(error)) from error
        if not np.array_equal(before, default_generator.get_state()):
            raise GradcheckError(FAILED.format(NO_DRAWING))


def directions(like: Tensor) -> list[Tensor]:
    """Two drawn gradients or tangents of a tensor: as many numbers as PyTorch takes of the
    global generator."""
    return [like.detach().clone().normal_() for _ in range(2)]


class Following(observing):
    """While active, what depends on one tensor is followed, in this thread."""

    def __init__(self, start: Tensor) -> None:
        self.followed = Followed()
        self.followed.add(start)
        super().__init__(self.followed)
        self.known: dict[str, Any] = {}

    def __enter__(self) -> Observer:
        for name, words in LOOKS.items():
            self.exchange(name, refusing(words, self.followed))
        for name in WRITES:
            self.exchange(name, writing(name, self.followed))
        for name in FACTORIES:
            self.exchange(name, making(self.followed))
        return super().__enter__()

    def exchange(self, name: str, make: Callable[[Any], Any]) -> None:
        """Another method in place of Tensor's own."""
        method = getattr(Tensor, name)
        self.known[name] = method
        instead = make(method)
        instead.__module__ = ""  # no method of the library's, which classes may take over
        setattr(Tensor, name, instead)

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        for name, method in self.known.items():
            setattr(Tensor, name, method)


class Followed(Observer):
    """The tensors that depend on the gradient."""

    def __init__(self) -> None:
        self.tensors: dict[int, Tensor] = {}  # by id: tensors compare by element

    def add(self, value: Any) -> None:
        """These depend on it."""
        self.tensors.update((id(tensor), tensor) for tensor in _tensors_in(value))

    def holds(self, value: Any) -> bool:
        """Whether any of these depends on it."""
        return any(id(tensor) in self.tensors for tensor in _tensors_in(value))

    def before(self, name: str, values: tuple[Any, ...], functional: bool | None) -> None:
        """Refuse what a batch cannot do."""
        if name in COMPARISONS and self.holds(values):
            raise BatchRefused(NO_RULE.format(name))
        if not functional and values:
            self.check_write(f"{name.removesuffix('_')}_", values[0], values[1:])

    def check_write(self, name: str, target: Any, rest: Any) -> None:
        """What is written to belongs to the batch if what is written does."""
        if self.holds(rest) and not self.holds(target):
            raise BatchRefused(TOO_SMALL.format(name))

    def after(self, name: str, values: tuple[Any, ...], result: Any, seen: Any) -> None:
        """Results depend on it if an operand does."""
        if self.holds(values):
            self.add(result)

    def before_node(self, node: Any, grad: Any) -> None:
        """All gradients of this pass depend on it."""
        self.add(grad)

    def node(self, node: Any, grad: Any, grads: tuple[Any, ...]) -> None:
        """All gradients of this pass depend on it."""
        self.add(grads)


def refusing(words: str, followed: Followed) -> Callable[[Any], Any]:
    """A method that is refused for what is followed, when the program calls it."""

    def instead_of(method: Any) -> Any:
        def call(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            if _is_the_programs() and followed.holds(self):
                raise BatchRefused(words)
            return method(self, *args, **kwargs)

        return call

    return instead_of


def writing(name: str, followed: Followed) -> Callable[[Any], Any]:
    """A method that writes; not a batch into one."""

    def instead_of(method: Any) -> Any:
        def call(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            if _is_the_programs():
                followed.check_write(_operator(name, args), self, (*args, *kwargs.values()))
            return method(self, *args, **kwargs)

        return call

    return instead_of


def making(followed: Followed) -> Callable[[Any], Any]:
    """A method whose result belongs to the batch if its tensor does."""

    def instead_of(method: Any) -> Any:
        def call(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            result = method(self, *args, **kwargs)
            if followed.holds(self):
                followed.add(result)
            return result

        return call

    return instead_of


def _operator(name: str, args: tuple[Any, ...]) -> str:
    """What a method is called in PyTorch's error: `x[...] = y` is one of two operators."""
    if name != "__setitem__":
        return name
    return "index_put_" if list(_tensors_in(args[:1])) else "copy_"


def _is_the_programs() -> bool:
    """Whether the method's caller is not flambeau itself."""
    return not sys._getframe(2).f_code.co_filename.startswith(OURS)


def _tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors_in(item)
