"""`torch._check` and its relatives: conditions that libraries state for their arguments.

Torch counts them as private, yet model code calls them; each raises an error of its own type.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from flambeau._core import dtype as dt
from flambeau._tensor.symbolic_numbers import is_symbolic
from flambeau._tensor.tensor import Tensor

Message = Callable[[], object]

UNSAID = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please "
    "report an enhancement request to PyTorch.)"
)


def _check(cond: Any, message: Message | None = None) -> None:
    """RuntimeError, in the words of `message()`, unless a bool is True."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Message | None = None) -> None:
    """IndexError unless a bool is True."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Message | None = None) -> None:
    """ValueError unless a bool is True."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Message | None = None) -> None:
    """TypeError unless a bool is True."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Message | None = None) -> None:
    """NotImplementedError unless a bool is True."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: Any, message: Message | None = None, *, max: Any = None) -> None:
    """RuntimeError for a size below 0, or above `max`."""
    warnings.warn(
        "_check_is_size will be removed in a future PyTorch release along with "
        "guard_size_oblivious.     Use _check(i >= 0) instead.",
        FutureWarning,
        stacklevel=2,
    )
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_with(error_type: type[Exception], cond: Any, message: Message | None) -> None:
    """An error of the given type unless a bool is True.

    Raises:
        TypeError: the condition is no bool, or the message nothing to call.
    """
    if isinstance(cond, Tensor):
        text = "cond must be a bool, but got a Tensor. For tensor conditions, use {} to assert {}"
        raise TypeError(text.format("torch._check_tensor_all()", "that all elements are true."))
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if is_symbolic(cond):
        cond = cond.node.shape_env.guard_or_defer_runtime_assert(cond.node.expr, "")
    if not cond:
        _fail(error_type, message)


def _check_tensor_all(cond: Any, message: Message | None = None) -> None:
    """RuntimeError unless every element of a tensor of bools is True."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_tensor_all_with(
    error_type: type[Exception], cond: Any, message: Message | None = None
) -> None:
    """An error of the given type unless every element of a tensor of bools is True."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not dt.bool_:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    if not cond._data.all():
        _fail(error_type, message)


def _assert(condition: Any, message: str) -> None:
    """`assert` as a function, which those who trace programs can record.

    Raises:
        AssertionError: the condition does not hold.
    """
    take_over = getattr(type(condition), "__torch_function__", None)
    if take_over is not None and not isinstance(condition, Tensor):
        return take_over(_assert, (type(condition),), (condition, message), {})
    assert condition, message
    return None


def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """RuntimeError where the one element of a tensor is zero; at once, on a CPU."""
    if not bool(input):
        raise RuntimeError(
            "Expected Tensor with single nonzero value, but got zero"
            if assert_msg is None
            else assert_msg
        )


def _fail(error_type: type[Exception], message: Message | None) -> NoReturn:
    if message is None:
        raise error_type(UNSAID)
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))
