"""Numbers that become elements: which type they take, which they fit into, and what factories do
with `out=`. Every entry is tried in both libraries."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import flambeau
from conformance.side_by_side import assert_same, attempt, compare, plain

torch = pytest.importorskip("torch")

KINDS = ("uint8", "int8", "int16", "int32", "int64", "bool", "float16", "bfloat16", "float32",
         "float64", "complex64")  # fmt: skip
NUMBERS = (-1, -100, -128, -255, -256, -300, 128, 255, 256, 300, 2**31, -(2**31) - 1, 2**62, 1e10,
           -1.5, 1e300, -1e39, float("nan"), float("inf"), 70000, True)  # fmt: skip
WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "tensor": lambda t, v, d: t.tensor(v, dtype=d),
    "list": lambda t, v, d: t.tensor([v, 1], dtype=d),
    "full": lambda t, v, d: t.full((1,), v, dtype=d),
    "fill_": lambda t, v, d: t.zeros(1, dtype=d).fill_(v),
    "fill": lambda t, v, d: t.fill(t.zeros(1, dtype=d), v),
    "full_like": lambda t, v, d: t.full_like(t.zeros(1, dtype=d), v),
    "masked_fill": lambda t, v, d: t.zeros(1, dtype=d).masked_fill(t.tensor([True]), v),
    "assigned": lambda t, v, d: _assigned(t.zeros(1, dtype=d), 0, v),
    "assigned by mask": lambda t, v, d: _assigned(t.zeros(1, dtype=d), t.tensor([True]), v),
    "scalar_tensor": lambda t, v, d: t.scalar_tensor(v, dtype=d),
    "new_full": lambda t, v, d: t.zeros(1, dtype=d).new_full((1,), v),
    "index_fill": lambda t, v, d: t.zeros(1, dtype=d).index_fill(0, t.tensor([0]), v),
    "pad": lambda t, v, d: t.nn.functional.pad(t.zeros(1, dtype=d), (1, 0), value=v),
    "fill_diagonal_": lambda t, v, d: t.zeros(2, 2, dtype=d).fill_diagonal_(v),
    "clamp": lambda t, v, d: t.zeros(1, dtype=d).clamp(min=v),
    "where": lambda t, v, d: t.where(t.tensor([True]), t.zeros(1, dtype=d), v),
    "add": lambda t, v, d: t.zeros(1, dtype=t.float32 if d.is_complex else d) + v,
    "scatter": lambda t, v, d: t.zeros(1, dtype=d).scatter(0, t.tensor([0]), v),
}


def _assigned(tensor: Any, place: Any, value: Any) -> Any:
    tensor[place] = value
    return tensor


def _told(call: Callable[[], Any]) -> Any:
    """Type, strides and values of what comes back, or the first line of the error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = call()
        except Exception as error:  # noqa: BLE001  # compared, whatever it is
            return type(error).__name__, str(error).partition("\n")[0]
    kind = str(found.dtype).rpartition(".")[2]
    return kind, tuple(found.stride()), found.requires_grad, repr(found.tolist())


@pytest.mark.parametrize("name", WRITES)
def test_numbers_fit_or_are_refused(name: str) -> None:
    for kind, number in itertools.product(KINDS, NUMBERS):
        ours, theirs = [
            _told(partial(WRITES[name], t, number, getattr(t, kind))) for t in (flambeau, torch)
        ]  # fmt: skip
        assert ours == theirs, (kind, number)


ITEMS: dict[str, Callable[[Any], Any]] = {
    "int": lambda t: 3, "float": lambda t: 2.5, "bool": lambda t: True, "complex": lambda t: 1j,
    "np.float64": lambda t: np.float64(3), "np.float32": lambda t: np.float32(3),
    "np.int8": lambda t: np.int8(3), "np.uint8": lambda t: np.uint8(3),
    "float64": lambda t: t.tensor(1.0, dtype=t.float64), "int8": lambda t: t.tensor(1).to(t.int8),
    "float16": lambda t: t.tensor(1.0, dtype=t.float16), "complex128": lambda t: t.tensor(1j) + 0,
    "bfloat16": lambda t: t.tensor(1.0, dtype=t.bfloat16), "of bool": lambda t: t.tensor(True),
}  # fmt: skip


@pytest.mark.parametrize("first", ITEMS)
def test_a_tensor_of_anything_has_the_type_of_all(first: str) -> None:
    for (second, make), nested in itertools.product(ITEMS.items(), (False, True)):
        found = []
        for t in (flambeau, torch):
            items = [ITEMS[first](t), make(t)]
            found.append(_told(partial(t.tensor, [[item] for item in items] if nested else items)))
        assert found[0] == found[1], second


FACTORIES: dict[str, Callable[..., Any]] = {
    "zeros": lambda t, **k: t.zeros(3, **k), "ones": lambda t, **k: t.ones(3, **k),
    "full": lambda t, **k: t.full((3,), 2.0, **k), "arange": lambda t, **k: t.arange(3, **k),
    "arange of floats": lambda t, **k: t.arange(3.0, **k), "eye": lambda t, **k: t.eye(3, **k),
    "linspace": lambda t, **k: t.linspace(0, 1, 3, **k), "rand": lambda t, **k: t.rand(3, **k),
    "logspace": lambda t, **k: t.logspace(0, 1, 3, **k),
    "range": lambda t, **k: t.range(0, 2, **k),
    "empty": lambda t, **k: t.empty(3, **k).fill_(0), "randn": lambda t, **k: t.randn(3, **k),
    "randint": lambda t, **k: t.randint(3, (3,), **k),
    "randperm": lambda t, **k: t.randperm(3, **k),
    "normal": lambda t, **k: t.normal(0.0, 1.0, (3,), **k),
    "more of rand": lambda t, **k: t.rand(size=(20,), **k),
    "more of randn": lambda t, **k: t.randn(size=(20,), **k),
}  # fmt: skip
OUTS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "another type": lambda t: {"out": t.zeros(3, dtype=t.float64), "dtype": t.float32},
    "of double": lambda t: {"out": t.zeros(3, dtype=t.float64)},
    "of complex": lambda t: {"out": t.zeros(0, dtype=t.complex64)},
    "that learns": lambda t: {"out": t.zeros(3, requires_grad=True)},
    "to learn": lambda t: {"out": t.zeros(3), "requires_grad": True},
    "of bytes": lambda t: {"out": t.zeros(3, dtype=t.int8)},
    "of bool": lambda t: {"out": t.zeros(3, dtype=t.bool)},
    "sparse": lambda t: {"out": t.zeros(3), "layout": t.sparse_coo},
    "with gaps": lambda t: {"out": t.zeros(6)[::2]},
    "turned": lambda t: {"out": t.zeros(3, 1).t()},
    "empty": lambda t: {"out": t.zeros(0)},
    "a Python type": lambda t: {"dtype": float},
}


@pytest.mark.parametrize("name", FACTORIES)
def test_factories_with_out(name: str) -> None:
    for place, given in OUTS.items():
        found = []
        for t in (flambeau, torch):
            t.manual_seed(5)
            words = given(t)
            told = _told(partial(FACTORIES[name], t, **words))
            out = words.get("out")
            shape = tuple(out.shape) if hasattr(out, "shape") and len(told) == 4 else None
            found.append((told, shape))
        assert _alike(*found), (place, found)


def _alike(ours: Any, theirs: Any) -> bool:
    """Whether the answers are the same; random numbers in double may differ in the last bit."""
    if len(ours[0]) != 4 or len(theirs[0]) != 4:
        return bool(ours == theirs)
    one, two = [np.array(eval(told[-1])) for told, _ in (ours, theirs)]  # noqa: S307
    same = (ours[0][:3], ours[1]) == (theirs[0][:3], theirs[1])
    return same and bool(np.allclose(one, two, rtol=1e-6))


class Half:
    """A number by its `__float__` alone."""

    def __float__(self) -> float:
        return 0.5


class Three:
    def __index__(self) -> int:
        return 3


NUMBER_LIKE = [Fraction(1, 2), Decimal(1), Half(), Three(), 1j, b"a"]
ELEMENTS = [None, "float32", "float64", "int32", "bool", "complex64", "float16", "bfloat16"]


@pytest.mark.parametrize("kind", ELEMENTS)
@pytest.mark.parametrize("value", NUMBER_LIKE, ids=lambda value: type(value).__name__)
def test_what_is_almost_a_number(value: Any, kind: str | None) -> None:
    if isinstance(value, bytes) and kind:
        pytest.skip("PyTorch takes bytes for sequences, if a type is given; here they are refused")

    def kept(t: Any, data: Any) -> Any:
        made = attempt(t.tensor, data, dtype=None if kind is None else getattr(t, kind))
        return str(made) if kind == "bfloat16" else made

    def text(found: Any) -> Any:
        plain_one = plain(found)
        if kind == "int32" and isinstance(value, complex) and "raised" in plain_one:
            return plain_one["raised"]
        return plain_one

    for data in (value, [value], [[value, 2]]):
        assert_same(text(kept(flambeau, data)), text(kept(torch, data)), 0.0, 0.0)


@pytest.mark.parametrize("kind", ["uint8", "int8", "int32", "int64"])
@pytest.mark.parametrize("name", ["linspace", "logspace"])
def test_bounds_of_spaced_integers(name: str, kind: str) -> None:
    def program(t: Any) -> Any:
        bounds = [(-3, 3, 4), (0, 300, 5), (3, -3, 7), (0.5, 9.7, 6), (0, 1, 1), (-1.5, 1.5, 4)]
        return [attempt(getattr(t, name), *b, dtype=getattr(t, kind)) for b in bounds]

    compare(program)


@pytest.mark.parametrize("part", ["real", "imag"])
def test_parts_take_numbers_that_fit(part: str) -> None:
    values = [0, 1.5, True, 1j, 2 + 0j, np.float64(2), np.complex128(1j), [1, 2], "a", None,
              np.ones(2)]  # fmt: skip

    def program(t: Any) -> Any:
        z = t.tensor([1 + 2j, 3 + 4j])
        return [(attempt(setattr, z, part, value), z.clone()) for value in values]

    compare(program)


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8", "bool", "float64", "float16"])
@pytest.mark.parametrize("source", ["float32", "float64", "bfloat16", "int32"])
def test_sums_without_nan_in_other_types(source: str, kind: str) -> None:
    def program(t: Any) -> Any:
        x, wanted = t.tensor([1.5, 2.75, 44.0]).to(getattr(t, source)), getattr(t, kind)
        return [attempt(getattr(t, name), x, dtype=wanted) for name in ("nansum", "nanmean")]

    compare(program)
