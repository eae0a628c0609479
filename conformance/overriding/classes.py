"""Classes that take part in `__torch_function__`, for both libraries."""

from __future__ import annotations

from typing import Any


def name_of(function: Any) -> str:
    """The name of a function; that of the property for a getter or setter."""
    name = function.__name__
    owner = getattr(function, "__self__", None)
    if name in ("__get__", "__set__") and owner is not None:
        getter = getattr(owner, "fget", None)
        owned = getattr(getter or owner, "__name__", "?")
        return f"{owned.removeprefix('_get_')}.{name}"
    return name.removeprefix("linalg_").removeprefix("fft_")


def logged(t: Any, log: list[Any], base: Any = None, title: str = "Logged") -> Any:
    """A subclass that notes each call: function, classes asked, classes of the arguments."""

    def note(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        log.append((name_of(func), [kind.__name__ for kind in types if kind is not t.Tensor],
                    [type(value).__name__ for value in args]))  # fmt: skip
        return super(made, cls).__torch_function__(func, types, args, kwargs or {})

    made = type(title, (base or t.Tensor,), {"__torch_function__": classmethod(note)})
    return made


class Diagonal:
    """A square matrix with one value on its diagonal, from the documentation's idea."""

    handlers: dict[Any, Any] = {}

    def __init__(self, count: int, value: float) -> None:
        self.count = count
        self.value = value

    def __repr__(self) -> str:
        return f"Diagonal(count={self.count}, value={self.value})"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in cls.handlers:
            return NotImplemented
        return cls.handlers[func](*args, **(kwargs or {}))


class Asked:
    """An object whose class answers with a text, or declines."""

    answer: Any = "asked"
    log: list[Any] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.log.append((cls.__name__, name_of(func), [kind.__name__ for kind in types], len(args),
                        sorted(kwargs or {})))  # fmt: skip
        return cls.answer


class AskedFirst(Asked):
    """A subclass of the former."""


class Declines(Asked):
    """It never takes over."""

    answer = NotImplemented


class AlsoDeclines(Asked):
    """Nor does this."""

    answer = NotImplemented
