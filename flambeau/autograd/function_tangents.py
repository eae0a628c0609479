"""Custom functions in forward mode: `jvp` makes the tangents of what `forward` gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from flambeau._core import modes
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.batches import Batch
from flambeau.autograd.function_batches import apply_batched
from flambeau.autograd.graph import tools
from flambeau.autograd.tangents import OTHER_SIZE, Level

WRONG_NUMBER = (
    "Function's jvp returned an invalid number of forward gradients (expected {} but got {})"
)
NOT_DIFFERENTIABLE = (
    "Function's jvp returned a gradient at position {}, but  the corresponding forward output is "
    "not a differentiable Tensor.You should return None at that position instead."
)
NOT_IN_PLACE = (
    "An inplace custom Function is not modifying the forward mode gradients inplace. If the "
    "forward is modifying an input inplace, then the jvp function must modify the corresponding "
    "gradient inplace."
)
NOT_A_VIEW = (
    "A custom Function's forward is returning a view (or an input as-is) but the jvp is not "
    "returning a view."
)
VIEW_OF_ANOTHER = (
    "A custom Function is returning a view but the jvp is not returning a view of the given grad "
    "input."
)
VIEW_OF_ANOTHER_BASE = (
    "A custom Function is returning a view but the jvp is not returning a view of the same base as "
    "the given grad input."
)


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
        given = [Given(v, t, t._version) for v, t in zip(args, tangents, strict=True)
                 if isinstance(v, Tensor) and level.knows(v)]  # fmt: skip
        context._in_jvp = True
        found = cls.jvp(context, *tangents)
        context._in_jvp = False
    _hand_out(level, context, output, found, given)
    return output, context


class Given(NamedTuple):
    """An argument that carries a tangent, the tangent, and its version before `jvp`."""

    value: Tensor
    tangent: Any
    version: int


def _hand_out(level: Level, context: Any, output: Any, found: Any, given: list[Given]) -> None:
    """Let each output carry what `jvp` made for it. RuntimeError where that is no derivative of
    it: of another number or shape, or not written or viewed as the output was."""
    results = output if isinstance(output, tuple) else (output,)
    tangents = found if isinstance(found, tuple) else (found,)
    _check_kinds(tangents)
    if len(results) != len(tangents):
        raise RuntimeError(WRONG_NUMBER.format(len(results), len(tangents)))
    for position, (result, tangent) in enumerate(zip(results, tangents, strict=True)):
        if not isinstance(result, Tensor):
            continue
        if _is_differentiable(context, result):
            _check_write(context, result, tangent, given)
            _put(level, result, tangent, given)
        elif tangent is not None:
            raise RuntimeError(NOT_DIFFERENTIABLE.format(position))


def _check_kinds(tangents: tuple[Any, ...]) -> None:
    for position, tangent in enumerate(tangents):
        if tangent is not None and not isinstance(tangent, Tensor):
            kind = type(tangent).__name__
            words = f"expected Variable or None (got {kind}) for grad output {position}."
            raise RuntimeError(words)


def _is_differentiable(context: Any, result: Tensor) -> bool:
    marked = any(result is t for t in context._non_differentiable)
    return result._data.dtype.kind in "fcVW" and not marked


def _check_write(context: Any, result: Tensor, tangent: Any, given: list[Given]) -> None:
    """What `forward` wrote to, `jvp` writes to, too."""
    if not any(result is t for t in context._dirty):
        return
    for argument in given:
        if argument.value is result:
            same = tangent is argument.tangent
            if not same or tangent._version == argument.version:
                raise RuntimeError(NOT_IN_PLACE)


def _check_view(result: Tensor, tangent: Any, given: list[Given]) -> None:
    """What is a view of an argument has a tangent that is a view of the argument's."""
    viewed = [argument for argument in given if _shows(result, argument.value)]
    if not viewed:
        return
    if tangent._base is None:
        raise RuntimeError(NOT_A_VIEW)
    whole = viewed[0].tangent
    if whole._base is None and tangent._base is not whole:
        raise RuntimeError(VIEW_OF_ANOTHER)
    if whole._base is not None and tangent._base is not whole._base:
        raise RuntimeError(VIEW_OF_ANOTHER_BASE)


def _shows(result: Tensor, value: Tensor) -> bool:
    """Whether a result is a view of an argument."""
    if value is result or result._base is None:
        return False
    return result._base is value or result._base is value._base


def _put(level: Level, result: Tensor, tangent: Any, given: list[Given]) -> None:
    if tangent is None:
        return
    _check_view(result, tangent, given)
    if result.shape != tangent.shape:
        raise RuntimeError(OTHER_SIZE.format(list(result.shape), list(tangent.shape)))
    level.put(result, tangent)


def _tangent_or_zeros(level: Level, value: Any, materialize: bool) -> Any:
    if not isinstance(value, Tensor):
        return None
    tangent = level.tangent(value)
    if tangent is None and materialize and value._data.dtype.kind in "fcVW":
        return tools.zeros(value._data.shape, value._data.dtype, value.device)
    return tangent
