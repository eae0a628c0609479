"""Custom functions in forward mode: `jvp` makes the tangents of what `forward` gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._core import modes
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.batches import Batch
from flambeau.autograd.function_batches import apply_batched
from flambeau.autograd.graph import tools
from flambeau.autograd.tangents import Level


def _level_of(values: Sequence[Any]) -> Level | None:
    """The innermost level that knows an argument: it carries a tangent, or stands for examples."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    for level in reversed(modes.stacks.levels):
        if any(map(level.knows, tensors)):
            return level  # type: ignore[no-any-return]
    return None


def in_levels(cls: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Run `forward`, then `jvp` for the tangents of what it gives, or all for a batch."""
    level = _level_of((*args, *kwargs.values()))
    if level is None:
        return cls._applied(args, kwargs)
    if isinstance(level, Batch):
        return apply_batched(level, cls, (*args, *kwargs.values()))
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
