"""Writes at an index into memory that elements share, of values from the same memory, at places
that there are not: which of several mistakes is named, and what is written where there is none."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import flambeau

torch = pytest.importorskip("torch")

TARGETS: dict[str, Callable[[Any], Any]] = {
    "expanded rows": lambda t: t.arange(3.0)[None].expand(4, 3),
    "expanded columns": lambda t: t.arange(4.0)[:, None].expand(4, 3),
    "windows": lambda t: t.arange(12.0).as_strided((4, 3), (1, 1)),
    "transposed": lambda t: t.arange(12.0).view(3, 4).clone().T,
    "plain": lambda t: t.arange(12.0).view(4, 3),
}
INDICES: dict[str, Callable[[Any], Any]] = {
    "in": lambda t: 0, "out": lambda t: 9, "list": lambda t: [0, 1], "list out": lambda t: [0, 9],
    "lists out": lambda t: ([0, 1], [0, 9]), "tensor out": lambda t: t.tensor([9]),
    "after a slice": lambda t: (slice(None), [9]), "mask": lambda t: t.tensor([True] * 5),
    "mask after a slice": lambda t: (slice(None), t.tensor([True] * 5)),
    "too many": lambda t: (0, 0, 0), "with None": lambda t: (None, 9),
    "rows": lambda t: slice(0, 2),
}  # fmt: skip
VALUES: dict[str, Callable[[Any, Any], Any]] = {
    "itself": lambda t, x: x, "most of it": lambda t, x: x[1:], "a row": lambda t, x: x[:1],
    "transposed": lambda t, x: x.T, "an element": lambda t, x: x[0, 0],
    "a copy": lambda t, x: x.clone(), "too large": lambda t, x: t.ones(5),
    "integers": lambda t, x: x[-1:].long(), "a number": lambda t, x: 2.0,
}  # fmt: skip
UNDEFINED = {("windows", "list"), ("windows", "rows")}
"""What reads memory that it has written."""
WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "index_copy_": lambda t, x: x.index_copy_(0, t.tensor([9]), t.ones(1, 3)),
    "index_add_": lambda t, x: x.index_add_(0, t.tensor([9]), t.ones(1, 3)),
    "index_fill_": lambda t, x: x.index_fill_(0, t.tensor([9]), 1.0),
    "scatter_": lambda t, x: x.scatter_(0, t.tensor([[9]]), 1.0),
    "scatter_add_": lambda t, x: x.scatter_add_(0, t.tensor([[9]]), t.ones(1, 1)),
    "put_": lambda t, x: x.put_(t.tensor([99]), t.ones(1)),
    "masked_fill_": lambda t, x: x.masked_fill_(t.tensor([True] * 5), 1.0),
    "accumulate": lambda t, x: x.index_put_((t.tensor([0, 1]),), t.ones(3), accumulate=True),
    "accumulate out": lambda t, x: x.index_put_((t.tensor([9]),), t.ones(3), accumulate=True),
    "accumulate too much": lambda t, x: x.index_put_((t.tensor([0]),), t.ones(5), accumulate=True),
}


def outcome(library: Any, target: str, write: Callable[[Any, Any], Any]) -> Any:
    x = TARGETS[target](library)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            write(library, x)
        except (RuntimeError, IndexError) as error:
            return type(error).__name__, str(error).partition("\n")[0][:90]
    return x.tolist()


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("target", TARGETS)
def test_assignments(target: str, index: str) -> None:
    for name, value in VALUES.items():
        if (target, index) in UNDEFINED and name in ("a row", "integers"):
            continue

        def write(t: Any, x: Any, value: Any = value) -> None:
            x[INDICES[index](t)] = value(t, x)

        assert outcome(flambeau, target, write) == outcome(torch, target, write), name


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("target", TARGETS)
def test_functions(target: str, name: str) -> None:
    found, wanted = (outcome(library, target, WRITES[name]) for library in (flambeau, torch))
    assert found == wanted
