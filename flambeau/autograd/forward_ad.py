"""`torch.autograd.forward_ad`: derivatives carried along with values.

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, direction)
        value, derivative = forward_ad.unpack_dual(f(dual))

A dual number of Clifford (1873): the derivative of the result in that direction, of the same shape
as the result, in one pass and without a graph. What operators do with the directions, tangents, is
in `_ops/transforms/tangents.py`; `torch.func.jvp` nests levels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flambeau._core import modes
from flambeau._tensor.tensor import Tensor, constructors
from flambeau.autograd.grad_mode import _Region
from flambeau.autograd.tangents import OTHER_SIZE, Level, new_level

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual",
           "unpack_dual"]  # fmt: skip

NO_LEVEL = (
    "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
    "enter_dual_level() first."
)
NOT_THE_LAST = (
    "Trying to exit a forward AD level that was not the last one that was created. This is not "
    "supported."
)
TAKEN = (
    "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level "
    "{} is not supported."
)
TANGENT_TAKEN = (
    "Setting a forward grad that itself has a forward gradient at the same level{} is not "
    "supported."
)


class UnpackedDualTensor(NamedTuple):
    """A value, and its derivative or None.

    >>> import flambeau as torch
    >>> import flambeau.autograd.forward_ad as forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(torch.tensor([3.0]), torch.tensor([1.0]))
    ...     value, tangent = forward_ad.unpack_dual(x.exp())
    >>> value, tangent
    (tensor([20.0855]), tensor([20.0855]))
    """

    primal: Any
    tangent: Any


class _Public:
    """The one level that users enter themselves, and whether tangents are carried at all."""

    level: Level | None = None
    enabled = True


_current_level = -1
"""The number of the level that tangents are carried in; -1 outside of one."""


def enter_dual_level() -> int:
    """Begin to carry tangents; gives the number of the level.

    Raises:
        RuntimeError: there is one already; `torch.func.jvp` nests.

    >>> import flambeau as torch
    >>> import flambeau.autograd.forward_ad as forward_ad
    >>> forward_ad.enter_dual_level()
    0
    >>> forward_ad.exit_dual_level()
    """
    if _Public.level is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _set(new_level())
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """Carry no tangents any longer: those that there are are forgotten.

    >>> import flambeau as torch
    >>> import flambeau.autograd.forward_ad as forward_ad
    >>> level = forward_ad.enter_dual_level()
    >>> x = forward_ad.make_dual(torch.tensor([3.0]), torch.tensor([1.0]))
    >>> forward_ad.exit_dual_level(level=level)
    >>> x
    tensor([3.])
    """
    found = _Public.level
    if level not in (None, 0) and found is not None:
        raise RuntimeError(NOT_THE_LAST)
    if found is None:
        raise RuntimeError("Dual level must be a positive number.")
    _set(None)
    found.end()


def _set(level: Level | None) -> None:
    global _current_level  # noqa: PLW0603
    _Public.level = level
    _current_level = -1 if level is None else 0


class dual_level(_Region):
    """A region in which dual tensors exist; a context manager, or around a function.

    >>> import flambeau as torch
    >>> import flambeau.autograd.forward_ad as forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(torch.tensor([3.0]), torch.tensor([1.0]))
    ...     tangent = forward_ad.unpack_dual(x ** 2).tangent
    >>> tangent
    tensor([6.])
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Tensor:
    """A view of `tensor` that carries `tangent`, of the same shape, from here on.

    Raises:
        ValueError: one of them is not of floating point or complex type.
        RuntimeError: there is no level, or the shapes differ.

    >>> import flambeau as torch
    >>> import flambeau.autograd.forward_ad as forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(torch.tensor([3.0]), torch.tensor([1.0]))
    ...     y = forward_ad.unpack_dual(x ** 2)
    >>> y.primal, y.tangent
    (tensor([9.]), tensor([6.]))
    """
    found = _level(level)
    if found is None:
        raise RuntimeError(NO_LEVEL)
    for name, given in (("primal", tensor), ("tangent", tangent)):
        if not (given.is_floating_point() or given.is_complex()):
            raise ValueError(
                f"Expected {name} to be floating point or complex, but got: {given.dtype}"
            )
    if found.tangent(tensor) is not None:
        raise RuntimeError(TAKEN.format(0))
    if tensor.shape != tangent.shape:
        raise RuntimeError(OTHER_SIZE.format(list(tensor.shape), list(tangent.shape)))
    if found.tangent(tangent) is not None:
        raise RuntimeError(TANGENT_TAKEN.format(0))
    dual: Tensor = tensor.view_as(tensor)
    found.put(dual, _lying_as(dual, tangent))
    return dual


def _lying_as(tensor: Any, tangent: Any) -> Any:
    """A tangent, or a copy of it in memory like the tensor's: of as many elements, conjugate or
    negative where the tensor is, so that each view of the one has its part of the other."""
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    is_conj, is_neg = tensor.is_conj(), tensor.is_neg()
    same_bits = tangent.is_conj() == is_conj and tangent.is_neg() == is_neg
    own = tangent.untyped_storage().nbytes() // tangent.element_size()
    if not tensor.numel() or (same_bits and count == own):
        return tangent
    room = tangent.detach().new_zeros(count)
    room = room.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    room = room.conj() if is_conj else room
    room = room._neg_view() if is_neg else room
    return room.copy_(tangent)


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """The value of a tensor without its tangent, and the tangent; None where there is none.

    >>> import flambeau as torch
    >>> import flambeau.autograd.forward_ad as forward_ad
    >>> with forward_ad.dual_level():
    ...     plain = forward_ad.unpack_dual(torch.tensor([3.0]))
    >>> plain.tangent is None
    True
    """
    found = _level(level)
    if found is None:
        return UnpackedDualTensor(tensor, None)
    tangent = found.tangent(tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    with found.apart():
        primal = tensor.view_as(tensor)
    found.put(primal, None)
    return UnpackedDualTensor(primal, tangent)


def _level(number: int | None) -> Level | None:
    return _Public.level if number in (None, 0) else None


class _set_fwd_grad_enabled(_Region):
    """Whether tangents are carried; at once, and as a context manager."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.before = list(modes.stacks.levels)
        if not mode:
            modes.stacks.levels = []

    def again(self) -> _set_fwd_grad_enabled:
        return _set_fwd_grad_enabled(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        modes.stacks.levels = self.before


def _is_fwd_grad_enabled() -> bool:
    return _Public.level is None or bool(modes.stacks.levels)


constructors["tangent"] = lambda tensor: (
    None if _Public.level is None else _Public.level.tangent(tensor)
)
