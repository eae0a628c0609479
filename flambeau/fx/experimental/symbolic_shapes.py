"""`torch.fx.experimental.symbolic_shapes`: what libraries ask about sizes. All are numbers."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import lazily


class GuardOnDataDependentSymNode(RuntimeError):
    """A condition that depends on numbers of tensors; nothing raises it."""


def _checked(a: Any) -> bool:
    if not isinstance(a, bool):
        raise AssertionError(f"Expected bool, got {type(a)}")
    return a


def guard_or_false(a: bool) -> bool:
    """A condition, or False where symbols leave it open: nothing is left open.

    Raises:
        AssertionError: it is no bool.
    """
    return _checked(a)


def guard_or_true(a: bool) -> bool:
    """A condition, or True where symbols leave it open: nothing is left open.

    Raises:
        AssertionError: it is no bool.
    """
    return _checked(a)


def statically_known_true(x: bool) -> bool:
    """Whether a condition holds whatever symbols stand for.

    Raises:
        AssertionError: it is no bool.
    """
    return _checked(x)


def free_symbols(val: Any) -> set[Any]:
    """The symbols in a size or a tensor: none."""
    return set()


def free_unbacked_symbols(x: Any) -> set[Any]:
    """The symbols in a size or a tensor that stand for no known number: none."""
    return set()


__getattr__ = lazily(__name__)
