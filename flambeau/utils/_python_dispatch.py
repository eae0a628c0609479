"""`torch.utils._python_dispatch`: modes that see every operator below autograd.

    class Logged(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            print(func)
            return func(*args, **(kwargs or {}))

    with Logged():
        y = x + 1                              # prints aten.add.Tensor

How rows come to be shown: `_ops/transforms/dispatching.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flambeau._core import modes
from flambeau._core.missing import lazily
from flambeau._tensor.tensor import Tensor, constructors

__all__ = ["BaseTorchDispatchMode", "TorchDispatchMode", "is_traceable_wrapper_subclass"]


__getattr__ = lazily(__name__)


class TorchDispatchMode:
    """Sees the operators of its region, as overloads of `torch.ops`: `with Mode(): ...`.

    `__torch_dispatch__(func, types, args, kwargs)` gives the result of the call; `func` computes
    it. While it runs, the mode around it is the innermost one. Autograd has been, or will be, done
    by then: what runs there is not recorded.
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        if _dispatch_key is not None:
            raise NotImplementedError("TorchDispatchMode: _dispatch_key is not there yet")

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        constructors["expect_dispatch"]()
        modes.stacks.dispatch_modes += [self]  # no call: no signal comes between
        modes.watch.active += 1
        modes.watch.results += 1
        return self

    def __exit__(self, *exc: object) -> None:
        modes.watch.active -= 1
        modes.watch.results -= 1
        modes.stacks.dispatch_modes.pop()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """A new mode, to be entered: an older way to write `cls(...)`."""
        return cls(*args, **kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that lets everything through."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> Any:
    """The innermost mode of this thread, or None."""
    stack = modes.stacks.dispatch_modes
    return stack[-1] if stack else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    """The modes of this thread, innermost last."""
    return list(modes.stacks.dispatch_modes)


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """No mode sees what runs in this region."""
    stack = modes.stacks.dispatch_modes
    modes.stacks.dispatch_modes = []
    try:
        yield stack
    finally:
        modes.stacks.dispatch_modes = stack


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a tensor is of a subclass that says what it is made of (`__tensor_flatten__`,
    `__tensor_unflatten__`)."""
    return (
        isinstance(t, Tensor)
        and type(t) is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """The same of a class."""
    return issubclass(t, Tensor) and t is not Tensor and hasattr(t, "__tensor_flatten__")


def transform_subclass(t: Any, callback: Any, outer_size: Any = None, outer_stride: Any = None
                       ) -> Any:  # fmt: skip
    """A tensor of such a subclass, made of what `callback(name, inner)` gives for its parts."""
    names, context = t.__tensor_flatten__()
    parts = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(parts, context, size, stride)
