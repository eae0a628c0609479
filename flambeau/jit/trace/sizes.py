"""Sizes while a trace runs: ints that remember which tensor they were the size of.

`x.view(x.size(0), -1)` has to go on working for other batch sizes, so a traced size carries a
0-dim tensor that the trace knows, and arithmetic with it is arithmetic with that tensor. What
makes an ordinary number of it (a comparison, `float(n)`) warns, as in torch.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

from flambeau._core.layout import Size
from flambeau._tensor.tensor import Tensor

PACKAGE = __name__.partition(".")[0]


class TracedSize(Size):
    """A shape whose sizes are traced, except in the package's own code."""

    __slots__ = ()


class TracedInt(int):
    """A size that a trace follows; `tensor` is its 0-dim tensor of int64."""

    tensor: Tensor
    trace: Any

    def __new__(cls, value: int, tensor: Tensor, trace: Any) -> TracedInt:
        made = super().__new__(cls, value)
        made.tensor, made.trace = tensor, trace
        return made

    @property
    def followed(self) -> bool:
        """Whether a program is asking while its trace runs, not the package itself."""
        return bool(self.trace.listening) and not _asked_by_package()

    def __hash__(self) -> int:
        return int.__hash__(self)

    def __bool__(self) -> bool:
        if self.followed:
            self.trace.warn("boolean")
        return int.__ne__(self, 0)

    def __int__(self) -> int:
        if self.followed:
            self.trace.warn("integer")
        return int.__int__(self)

    def __float__(self) -> float:
        if self.followed:
            self.trace.warn("float")
        return int.__float__(self)

    def __reduce__(self) -> Any:
        return int, (int.__int__(self),)


def _asked_by_package() -> bool:
    """Whether the code that uses the size is the package's own."""
    return str(sys._getframe(3).f_globals.get("__name__", "")).partition(".")[0] == PACKAGE


def _arithmetic(name: str, plain: Callable[..., Any]) -> Any:
    def method(self: TracedInt, other: Any) -> Any:
        if not self.trace.listening or not isinstance(other, (int, float, Tensor)):
            return plain(self, other)
        theirs = other.tensor if isinstance(other, TracedInt) else other
        result = getattr(self.tensor, name)(theirs)
        return traced(result, self.trace)

    method.__name__ = name
    return method


def _comparison(name: str, plain: Callable[..., Any]) -> Any:
    def method(self: TracedInt, other: Any) -> Any:
        if not isinstance(other, (int, float, Tensor)) or not self.followed:
            return plain(self, other)
        theirs = other.tensor if isinstance(other, TracedInt) else other
        return getattr(self.tensor, name)(theirs)

    method.__name__ = name
    return method


def traced(result: Any, trace: Any) -> Any:
    """An integer result as a traced size again; any other is the tensor itself."""
    if isinstance(result, Tensor) and result.dim() == 0 and not result.dtype.is_floating_point:  # type: ignore[attr-defined]
        return TracedInt(result._data.item(), result, trace)
    return result


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    for _word in (f"__{_name}__", f"__r{_name}__"):
        setattr(TracedInt, _word, _arithmetic(_word, getattr(int, _word)))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _word = f"__{_name}__"
    setattr(TracedInt, _word, _comparison(_word, getattr(int, _word)))


def _negative(self: TracedInt) -> Any:
    return traced(operator.neg(self.tensor), self.trace)  # type: ignore[arg-type]


setattr(TracedInt, "__neg__", _negative)  # noqa: B010 - as the other operators are set
