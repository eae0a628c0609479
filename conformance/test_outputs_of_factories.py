"""`out=` of functions that make tensors of a size: resized without a word, but by `arange`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from conformance.side_by_side import plain

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "zeros": lambda t, out: t.zeros(4, out=out), "ones": lambda t, out: t.ones(2, 2, out=out),
    "full": lambda t, out: t.full((4,), 2, out=out), "eye": lambda t, out: t.eye(2, out=out),
    "rand": lambda t, out: t.rand(4, out=out), "randn": lambda t, out: t.randn(4, out=out),
    "randint": lambda t, out: t.randint(5, (4,), out=out),
    "randperm": lambda t, out: t.randperm(4, out=out),
    "linspace": lambda t, out: t.linspace(0, 1, 4, out=out),
    "logspace": lambda t, out: t.logspace(0, 1, 4, out=out),
    "arange": lambda t, out: t.arange(4, out=out),
    "add": lambda t, out: t.add(t.ones(4), 1, out=out),
}  # fmt: skip


def heard(t: Any, name: str, size: tuple[int, ...], columns: bool) -> Any:
    t.manual_seed(0)
    out = t.zeros(size, dtype=t.int64 if name == "randperm" else t.float32)
    out = out.t() if columns else out
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            CALLS[name](t, out)
        except RuntimeError as error:
            return str(error)
    return plain(out), out.stride(), [str(entry.message).split(" (Trig")[0] for entry in caught]


@pytest.mark.parametrize("size", [(0,), (1,), (4,), (2, 2), (3, 2), (6,)])
@pytest.mark.parametrize("name", CALLS)
def test_both_resize_alike(name: str, size: tuple[int, ...]) -> None:
    import numpy as np
    import torch

    import flambeau

    for columns in (False, True)[: len(size)]:
        ours, theirs = heard(flambeau, name, size, columns), heard(torch, name, size, columns)
        np.testing.assert_equal(ours, theirs)
