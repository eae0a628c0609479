"""Custom functions in forward mode: `jvp` makes the tangents of what `forward` gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._core import modes
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.graph import tools
from flambeau.autograd.tangents import Level


def _level_of(values: Sequence[Any]) -> Level | None:
    """The innermost level of forward mode that an argument carries a tangent of."""
    for level in reversed(modes.stacks.levels):
        if any(isinstance(v, Tensor) and level.tangent(v) is not None for v in values):
            return level  # type: ignore[no-any-return]
    return None


def in_levels(cls: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Run `forward`, then `jvp` for the tangents of what it gives, level by level."""
    level = _level_of((*args, *kwargs.values()))
    if level is None:
        return cls._applied(args, kwargs)
    with level.apart():
        output, context = in_levels(cls, args, kwargs)
        tangents = [_tangent_or_zeros(level, v, context._materialize) for v in args]
        context._in_jvp = True
        found = cls.jvp(context, *tangents)
        context._in_jvp = False
    results = output if isinstance(output, tuple) else (output,)
    given = found if isinstance(found, tuple) else (found,)
    for result, tangent in zip(results, given, strict=True):
        if isinstance(result, Tensor) and tangent is not None:
            level.put(result, tangent)
    return output, context


def _tangent_or_zeros(level: Level, value: Any, materialize: bool) -> Any:
    if not isinstance(value, Tensor):
        return None
    tangent = level.tangent(value)
    if tangent is None and materialize and value._data.dtype.kind in "fcV":
        return tools.zeros(value._data.shape, value._data.dtype)
    return tangent
