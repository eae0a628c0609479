"""Types of results: every pair of dtypes, as tensors, 0-dim tensors and numbers, as in torch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch as reference

import flambeau

DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip
NUMBERS = (True, 3, 2.5, 1 + 2j)
FUNCTIONS = ("add", "mul", "div", "eq", "pow", "where")
PAIRS = list(itertools.product(DTYPES, DTYPES))


def outcome(action: Callable[..., Any], *args: Any) -> Any:
    """The type of what an action returns, or its error."""
    try:
        found = action(*args)
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0]
    return name_of(getattr(found, "dtype", found))


def differs(found: Any, wanted: Any) -> bool:
    """Whether two outcomes differ."""
    return bool(found != wanted)


def name_of(value: Any) -> Any:
    return str(value).removeprefix("torch.") if not isinstance(value, bool) else value


def operands(library: Any, left: str, right: str) -> dict[str, tuple[Any, Any]]:
    """Tensors and 0-dim tensors of two types."""
    a = library.tensor([1, 2], dtype=getattr(library, left))
    b = library.tensor([1, 2], dtype=getattr(library, right))
    return {"tensors": (a, b), "0-dim right": (a, b[0]), "0-dim left": (a[0], b),
            "0-dim both": (a[0], b[0])}  # fmt: skip


def vector(library: Any, dtype: str) -> Any:
    return library.ones(2, dtype=getattr(library, dtype))


def applied(library: Any, function: str, left: Any, right: Any) -> Any:
    if function == "where":
        return library.where(library.tensor([True, False]), left, right)
    return getattr(library, function)(left, right)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_pairs_of_tensors(function: str) -> None:
    different = []
    for left, right in PAIRS:
        ours, theirs = operands(flambeau, left, right), operands(reference, left, right)
        for form in ours:
            found = outcome(applied, flambeau, function, *ours[form])
            wanted = outcome(applied, reference, function, *theirs[form])
            if differs(found, wanted):
                different.append((left, right, form, found, wanted))
    assert not different


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_numbers(function: str) -> None:
    different = []
    for dtype, number, swap, zero_dim in itertools.product(DTYPES, NUMBERS, (False, True), (0, 1)):
        results = []
        for library in (flambeau, reference):
            x = library.tensor([1, 2], dtype=getattr(library, dtype))
            x = x[0] if zero_dim else x
            pair = (number, x) if swap else (x, number)
            results.append(outcome(applied, library, function, *pair))
        if differs(*results):
            different.append((dtype, number, swap, zero_dim, *results))
    assert not different


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", ["add_", "mul_", "div_", "eq_", "pow_", "copy_"])
def test_in_place(function: str) -> None:
    different = []
    for left, right in PAIRS:
        ours, theirs = operands(flambeau, left, right), operands(reference, left, right)
        for form in ("tensors", "0-dim right"):
            found = outcome(getattr(ours[form][0], function), ours[form][1])
            wanted = outcome(getattr(theirs[form][0], function), theirs[form][1])
            if differs(found, wanted):
                different.append((left, right, form, found, wanted))
    assert not different


@pytest.mark.parametrize("function", ["promote_types", "can_cast"])
def test_functions_of_types(function: str) -> None:
    for left, right in PAIRS:
        results = [
            name_of(getattr(library, function)(getattr(library, left), getattr(library, right)))
            for library in (flambeau, reference)
        ]
        assert results[0] == results[1], (left, right)


def test_result_type() -> None:
    for left, right in PAIRS:
        ours, theirs = operands(flambeau, left, right), operands(reference, left, right)
        for form in ours:
            found = outcome(flambeau.result_type, *ours[form])
            assert not differs(found, outcome(reference.result_type, *theirs[form]))
    for dtype, number in itertools.product(DTYPES, NUMBERS):
        results = [
            outcome(library.result_type, vector(library, dtype), number)
            for library in (flambeau, reference)
        ]
        assert not differs(*results), (dtype, number)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("default", ["float16", "bfloat16", "float32", "float64"])
def test_default_dtype(default: str) -> None:
    """What integers and Python numbers become."""
    results = []
    for library in (flambeau, reference):
        library.set_default_dtype(getattr(library, default))
        try:
            x = library.tensor([1, 2])
            imaginary = default != "bfloat16"  # torch has no complex type for it
            unit = 1j if imaginary else 1.0
            made = [
                x / 2, x + 1.5, x.sin(), library.tensor(1.5), library.tensor(unit), x + unit,
                library.ones(2), x * 2.0,
            ]  # fmt: skip
            results.append([name_of(value.dtype) for value in made])
        finally:
            library.set_default_dtype(library.float32)
    assert not any(map(differs, *results))
