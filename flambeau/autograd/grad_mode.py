"""`no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`: what is recorded."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from flambeau._core import modes
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.versions import set_version, version_of

state = modes.grad


CLASSES = (
    "Decorating classes is deprecated and will be disabled in future versions. You should only "
    "decorate functions or methods. To preserve the current behavior of class decoration, you can "
    "directly decorate the `__init__` method and nothing else."
)


class _Region:
    """A context manager that is also a decorator, for functions and generator functions."""

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isclass(function):
            warnings.warn(CLASSES, FutureWarning, stacklevel=2)
            return self._wrap_class(function)
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self.again():
                return function(*args, **kwargs)

        return wrapper

    def again(self) -> Any:
        """A fresh region of the same kind: decorated functions may recurse."""
        return type(self)()

    def _wrap_class(self, kind: type) -> Callable[..., Any]:
        """What makes instances of a class within a region of the same kind."""

        def make(*args: Any, **kwargs: Any) -> Any:
            with self.again():
                return kind(*args, **kwargs)

        return make

    def _wrap_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The region holds while the generator runs, not while its consumer does."""

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            step: Callable[[], Any] = generator.__next__
            while True:
                try:
                    with self.again():
                        item = step()
                except StopIteration as stop:
                    return stop.value
                try:
                    step = functools.partial(generator.send, (yield item))
                except GeneratorExit:
                    with self.again():
                        generator.close()
                    raise
                except BaseException as error:  # the consumer's, handed on into the generator
                    step = functools.partial(generator.throw, error)

        return wrapper


class _Fixed(_Region):
    """A region that switches recording on or off, by itself or around a function."""

    _recording: bool

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        region = super().__new__(cls)
        return region if function is None else region(function)

    def __enter__(self) -> None:
        self.before = state.enabled
        if self.before is None:
            self.inside, state.inside = state.inside, self._recording
        else:
            state.enabled = self._recording

    def __exit__(self, *exc: object) -> None:
        state.enabled = self.before
        if self.before is None:
            state.inside = self.inside


class no_grad(_Fixed):
    """Operators in this region are not recorded; their results, of any shape, do not require grad.

    For evaluation, and for writing to parameters: it saves the memory that a graph would keep.
    Used as `with torch.no_grad():`, or as a decorator of a function.

    >>> import flambeau as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.no_grad():
    ...     y = x * 2
    >>> y.requires_grad, (x * 2).requires_grad
    (False, True)
    >>> torch.no_grad()(lambda: x * 2)().requires_grad
    False
    """

    _recording = False


class enable_grad(_Fixed):
    """Operators in this region are recorded again, inside `no_grad`; not in inference mode.

    >>> import flambeau as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.no_grad(), torch.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """

    _recording = True


class set_grad_enabled(_Region):
    """Switch recording on or off at once; as a context manager, until its end.

    >>> import flambeau as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.set_grad_enabled(False):
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        self.before, self.inside = state.enabled, state.inside
        if mode is not True and mode is not False:
            raise TypeError("set_grad_enabled(): argument 'enabled' (position 1) must be bool, not "
                            f"{type(mode).__name__}")  # fmt: skip
        self.mode = mode
        self.__enter__()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        self.__exit__()
        return super().__call__(function)

    def again(self) -> Any:
        return set_grad_enabled(self.mode)

    def __enter__(self) -> None:
        if state.enabled is None:
            state.inside = self.mode
        else:
            state.enabled = self.mode

    def __exit__(self, *exc: object) -> None:
        state.enabled, state.inside = self.before, self.inside

    def __str__(self) -> str:
        return f"set_grad_enabled(mode={self.mode})"

    __repr__ = __str__


class inference_mode(_Region):
    """No recording and no version counts: new tensors can never take part in autograd.

    >>> import flambeau as torch
    >>> with torch.inference_mode():
    ...     y = torch.ones(1) * 2
    >>> y.is_inference()
    True
    """

    def __new__(cls, mode: Any = True) -> Any:
        region = super().__new__(cls)
        if callable(mode):
            region.mode = True
            return region(mode)
        return region

    def __init__(self, mode: Any = True) -> None:
        self.mode = bool(mode)

    def again(self) -> Any:
        return inference_mode(self.mode)

    def __enter__(self) -> None:
        self.before, self.inside = state.enabled, state.inside
        state.enabled = None if self.mode else True
        state.inside = False
        if self.mode:
            modes.watch.results += 1
            modes.expect_inference_tensors()

    def __exit__(self, *exc: object) -> None:
        state.enabled, state.inside = self.before, self.inside
        if self.mode:
            modes.watch.results -= 1


class set_multithreading_enabled(_Region):
    """Whether backward may use several threads. It runs in the calling thread here, so the setting
    is only remembered.

    >>> import flambeau as torch
    >>> with torch.autograd.set_multithreading_enabled(False):
    ...     inside = torch.autograd.is_multithreading_enabled()
    >>> inside
    False
    """

    def __init__(self, mode: bool) -> None:
        self.mode, self.before = bool(mode), Threads.enabled
        Threads.enabled = self.mode

    def again(self) -> Any:
        return set_multithreading_enabled(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        Threads.enabled = self.before


class Threads:
    """What `set_multithreading_enabled` has set."""

    enabled = True


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` has set.

    >>> import flambeau as torch
    >>> torch.autograd.is_multithreading_enabled()
    True
    """
    return Threads.enabled


class _unsafe_preserve_version_counter(_Region):
    """Writes to some tensors within are not counted: backward will not notice them."""

    def __init__(self, tensors: Any) -> None:
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
        self.counts = [version_of(tensor) for tensor in self.tensors]

    def again(self) -> Any:
        return _unsafe_preserve_version_counter(self.tensors)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        for tensor, count in zip(self.tensors, self.counts, strict=True):
            set_version(tensor, count)


def is_grad_enabled() -> bool:
    """Whether operators are recorded in this thread.

    >>> import flambeau as torch
    >>> with torch.no_grad():
    ...     inside = torch.is_grad_enabled()
    >>> inside, torch.is_grad_enabled()
    (False, True)
    """
    return state.inside if state.enabled is None else state.enabled


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on in this thread.

    >>> import flambeau as torch
    >>> torch.is_inference_mode_enabled()
    False
    """
    return state.inference
