"""`torch._guards`: which mode fake tensors belong to."""

from __future__ import annotations

from typing import Any

from flambeau._core import modes
from flambeau._core.missing import lazily
from flambeau._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from flambeau.utils._pytree import tree_leaves


def active_fake_mode() -> FakeTensorMode | None:
    """The innermost mode in which new tensors are fake, or None."""
    found = [mode for mode in modes.stacks.dispatch_modes if isinstance(mode, FakeTensorMode)]
    return found[-1] if found else None


def detect_fake_mode(inputs: Any = None) -> FakeTensorMode | None:
    """The mode that is on, or that fake tensors among some inputs belong to; None without any.

    Raises:
        AssertionError: they belong to several.
    """
    modes_ = [leaf.fake_mode for leaf in tree_leaves(inputs) if isinstance(leaf, FakeTensor)]
    active = active_fake_mode()
    found = {id(mode): mode for mode in ([active] if active else []) + modes_}
    if len(found) > 1:
        raise AssertionError("fake modes do not match: the inputs belong to several")
    return next(iter(found.values()), None)


__getattr__ = lazily(__name__)
