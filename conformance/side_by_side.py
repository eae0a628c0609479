"""Runs a function with PyTorch and with flambeau, and compares what it returns or raises."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch as reference
import torch.nn.utils.prune  # noqa: F401  torch does not import it by itself

import flambeau

Scenario = Callable[[Any], Any]


class Raised:
    """An exception as a result: the name of its class and its text."""

    def __init__(self, error: BaseException) -> None:
        self.kind = type(error).__name__
        self.text = str(error)

    def __repr__(self) -> str:
        return f"{self.kind}: {self.text}"


def attempt(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a call returns, or the exception that it raises; for use in scenarios."""
    try:
        return function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001
        return Raised(error)


def told_strides(tensor: Any) -> tuple[int, ...]:
    """Strides that mean something: those of dims of a single element are whatever was left over."""
    pairs = zip(tensor.stride(), tensor.shape, strict=True)
    return tuple(1 if size == 1 else stride for stride, size in pairs)


def plain(value: Any, strides: bool = False) -> Any:
    """A result without anything of the library in it; `strides`: those of tensors count too."""
    if isinstance(value, (reference.Tensor, flambeau.Tensor)):
        array = value.detach().numpy() if not value.is_sparse else value.to_dense().numpy()
        return {
            "values": np.array(array),
            "dtype": str(value.dtype),
            "strides": str(told_strides(value)) if strides else None,
            "requires_grad": value.requires_grad,
            "is_parameter": type(value).__name__ == "Parameter",
        }
    if isinstance(value, Raised):
        return {"raised": value.kind, "text": value.text}
    if isinstance(value, dict):
        return {str(key): plain(entry, strides) for key, entry in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(entry, strides) for entry in value]
    if isinstance(value, type):
        return value.__name__
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    return str(value)


def assert_same(ours: Any, theirs: Any, rtol: float, atol: float, where: str = "result") -> None:
    """Compare two plain results; floating-point numbers within tolerances."""
    assert type(ours) is type(theirs), f"{where}: {ours!r} instead of {theirs!r}"
    if isinstance(ours, dict):
        assert list(ours) == list(theirs), where
        for key in theirs:
            assert_same(ours[key], theirs[key], rtol, atol, f"{where}.{key}")
    elif isinstance(ours, list):
        assert len(ours) == len(theirs), where
        for i, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(mine, other, rtol, atol, f"{where}[{i}]")
    elif isinstance(ours, np.ndarray):
        assert ours.shape == theirs.shape, where
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol, err_msg=where)
    elif isinstance(ours, float):
        assert math.isclose(ours, theirs, rel_tol=rtol, abs_tol=atol), where
    else:
        assert ours == theirs, f"{where}: {ours!r} instead of {theirs!r}"


@contextlib.contextmanager
def every_warning(library: Any) -> Iterator[None]:
    """Warnings that come once in a process come whatever ran before: those of C++ each time."""
    before = library.is_warn_always_enabled()
    library.set_warn_always(True)
    reference.storage._reset_warn_typed_storage_removal()
    try:
        yield
    finally:
        library.set_warn_always(before)


OF_STORAGES = "UserWarning: TypedStorage is deprecated"
"""How the one warning begins that PyTorch gives once for a reason of its own, be it in Python."""


def texts_of(caught: list[warnings.WarningMessage], leave_out: str) -> list[str]:
    """The texts of warnings, but for those that begin so; that of storages once."""
    texts = [
        f"{entry.category.__name__}: {entry.message}"
        for entry in caught
        if not (leave_out and str(entry.message).startswith(leave_out))
    ]
    again = [i for i, text in enumerate(texts) if text.startswith(OF_STORAGES)][1:]
    return [text for i, text in enumerate(texts) if i not in again]


def compare(
    scenario: Scenario,
    rtol: float = 1e-4,
    atol: float = 1e-6,
    strides: bool = False,
    warned_once: str = "",
) -> None:
    """Run a scenario from the same seed under both libraries; results and warnings agree.

    `warned_once`: a beginning of warnings that count for nothing: how often they come differs.
    """
    results = []
    for library in (flambeau, reference):
        library.manual_seed(0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with every_warning(library):
                result = plain(attempt(scenario, library), strides)
        results.append((result, texts_of(caught, warned_once)))
    (ours, our_warnings), (theirs, their_warnings) = results
    assert_same(ours, theirs, rtol, atol)
    assert our_warnings == their_warnings
