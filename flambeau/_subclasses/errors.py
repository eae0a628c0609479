"""What fake tensors refuse."""

from __future__ import annotations

from typing import Any


def _operator(error: Any) -> Any:
    """The overload that was called."""
    return error.args[0]


class DataDependentOutputException(RuntimeError):
    """The result is a number that only the elements tell: `x.item()`, `torch.equal(x, y)`."""

    func = property(_operator)


class DynamicOutputShapeException(RuntimeError):
    """The shape of the result is what only the elements tell: `x.nonzero()`."""

    func = property(_operator)


class UnsupportedOperatorException(RuntimeError):
    """An operator that does not run on the device "meta"."""

    func = property(_operator)


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor of a kind that has no fake form: a sparse one."""


class FakeTensorDeviceMismatchError(RuntimeError):
    """The tensors of a call are on several devices."""


for _error in (DataDependentOutputException, DynamicOutputShapeException,
               UnsupportedOperatorException, UnsupportedFakeTensorException,
               FakeTensorDeviceMismatchError):  # fmt: skip
    _error.__module__ = "flambeau._subclasses.fake_tensor"
