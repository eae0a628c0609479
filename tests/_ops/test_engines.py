"""NumPy and the compiled loops compute the same: chains of operators over all kinds of operands.

The oracle is a row's NumPy kernel for operands that were converted and broadcast beforehand.
Arithmetic, comparisons and integers agree to the bit; functions within a few units of rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import flambeau as torch
from flambeau._compiler import expr as E
from flambeau._compiler import spec
from flambeau._compiler.expr import Expr, parameter
from flambeau._compiler.kernel_source import has_form
from flambeau._compiler.numpy_source import compile_kernel
from flambeau._compiler.types import OF_NUMPY
from flambeau._core.dtype import bfloat16
from flambeau._ops.launching import copies
from flambeau._ops.table import loading
from flambeau._runtime import choice

if not choice.available():
    pytest.skip("llvmlite is not installed", allow_module_level=True)

from flambeau._ops.launching.loop_plans import Fusion

loading.load_all()  # rows add primitives
BFLOAT16 = bfloat16.numpy_dtype
FLOATS = [np.dtype(name) for name in ("float32", "float64", "float16")] + [BFLOAT16]
INTEGERS = [np.dtype(name) for name in ("int64", "int32", "int16", "int8", "uint8")]
BOOL = np.dtype(bool)
NAMES = ["a", "b", "c"]

FOR_NUMBERS = ("add", "subtract", "multiply", "maximum", "minimum", "square", "negative",
               "absolute", "less", "where", "sign_of", "heaviside_step")  # fmt: skip
FOR_FLOATS = (*FOR_NUMBERS, "divide", "sqrt", "floor", "rint", "trunc", "isnan", "fmax", "fmin",
              "inverse_root", "lerp")  # fmt: skip
FOR_INTEGERS = (*FOR_NUMBERS, "bitwise_and", "bitwise_xor", "invert", "left_shift", "right_shift")
FOR_BOOLS = ("add", "multiply", "maximum", "logical_xor", "logical_not", "bitwise_or", "equal")
ARITY = {"where": 3, "lerp": 3} | dict.fromkeys(
    ("square", "negative", "absolute", "sign_of", "sqrt", "floor", "rint", "trunc", "isnan",
     "inverse_root", "invert", "logical_not"), 1)  # fmt: skip


@pytest.fixture(autouse=True)
def _checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kernel that a test makes is checked, and kept for this process only."""
    monkeypatch.setattr(spec, "ACTIVE", True)


@st.composite
def chains(draw: Any, words: tuple[str, ...]) -> Expr:
    """A few primitives applied to parameters, earlier results and numbers."""
    values: list[Any] = [parameter(name) for name in NAMES]
    for _ in range(draw(st.integers(1, 5))):
        word = draw(st.sampled_from(words))
        parts = [draw(st.sampled_from(values)) for _ in range(ARITY.get(word, 2))]
        if word in ("add", "multiply", "maximum", "less") and draw(st.booleans()):
            parts[1] = draw(st.sampled_from((0, 1, 2)))
        if word == "where":
            parts[0] = parts[0] > 0
        made = Expr(word, *parts)
        if word in ("less", "isnan", "equal"):
            made = E.where(made, parts[0], values[0])
        values.append(made)
    return values[-1]


@st.composite
def operand(draw: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """An array that broadcasts to a shape, laid out in memory in one of several ways."""
    sizes = tuple(1 if draw(st.integers(0, 4)) == 0 else size for size in shape)
    sizes = sizes[draw(st.integers(0, len(sizes))) if draw(st.integers(0, 3)) == 0 else 0 :]
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    way = draw(st.sampled_from(("plain", "turned", "spread", "offset")))
    if way == "spread" and sizes:
        data = values(rng, (*sizes[:-1], 3 * sizes[-1]), dtype)[..., ::3]
    elif way == "turned":
        data = values(rng, sizes[::-1], dtype).T
    elif way == "offset" and sizes:
        data = values(rng, (sizes[0] + 1, *sizes[1:]), dtype)[1:]
    else:
        data = values(rng, sizes, dtype)
    return np.asarray(data)


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Numbers of a type, special ones among them."""
    if dtype == BOOL:
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        wide = rng.random(shape) < 0.2
        small = rng.integers(0 if dtype.kind == "u" else -9, 70, shape)
        large = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        return np.where(wide, large, small.astype(dtype))
    data = rng.standard_normal(shape) * rng.choice([0.1, 1, 30], shape)
    special = rng.choice([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, 0.5], shape)
    return np.where(rng.random(shape) < 0.15, special, data).astype(dtype)


shapes = st.sampled_from(
    [(), (1,), (7,), (64,), (131,), (700,), (3, 5), (9, 70), (70, 9), (2, 3, 40), (65, 66),
     (130, 2), (4, 1, 33), (0,), (3, 0), (2, 9, 3, 17)]
)  # fmt: skip


def oracle(expression: Expr, arrays: list[np.ndarray], compute: np.dtype[Any]) -> np.ndarray:
    """NumPy on converted operands; half types in float32, rounded once."""
    inner = np.dtype(np.float32) if compute.itemsize == 2 and compute.kind in "fV" else compute
    with np.errstate(all="ignore"):
        converted = [array.astype(compute).astype(inner) for array in arrays]
        return np.asarray(compile_kernel("oracle", expression, NAMES)(*converted))


def check(expression: Expr, arrays: list[np.ndarray], compute: np.dtype[Any]) -> None:
    """One loop against the oracle."""
    if not has_form(expression, NAMES, OF_NUMPY[compute.name]):
        return
    with np.errstate(all="ignore"):  # numbers enter in the type that is computed in
        arrays = [a if a.ndim else np.asarray(a.astype(compute)) for a in arrays]
    expected = oracle(expression, arrays, compute)
    if expected.dtype != BOOL:
        with np.errstate(all="ignore"):
            expected = expected.astype(compute)
    expected = np.broadcast_to(expected, np.broadcast_shapes(*[a.shape for a in arrays]))
    fusion = Fusion("test", [expression], NAMES, compute, [expected.dtype])
    results = fusion.run(arrays)
    assert results is not None
    assert results[0].dtype == expected.dtype
    same(results[0], expected)


def same(result: np.ndarray, expected: np.ndarray) -> None:
    assert result.shape == expected.shape
    if expected.dtype.kind == "V":
        result, expected = result.astype(np.float32), expected.astype(np.float32)
    assert np.array_equal(result, expected, equal_nan=expected.dtype.kind == "f")


# Every example compiles a kernel: a failing one is reported as it is, not made smaller.
FEW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck),
               phases=(Phase.explicit, Phase.reuse, Phase.generate))  # fmt: skip


@FEW
@given(data=st.data(), shape=shapes, compute=st.sampled_from(FLOATS))
def test_chains_of_floats(data: Any, shape: tuple[int, ...], compute: np.dtype[Any]) -> None:
    expression = data.draw(chains(FOR_FLOATS))
    kinds = [compute, compute, np.dtype(np.float32), BOOL, np.dtype(np.int32), np.dtype(np.int64)]
    arrays = [data.draw(operand(shape, data.draw(st.sampled_from(kinds)))) for _ in NAMES]
    check(expression, arrays, compute)


@FEW
@given(data=st.data(), shape=shapes, compute=st.sampled_from(INTEGERS))
def test_chains_of_integers(data: Any, shape: tuple[int, ...], compute: np.dtype[Any]) -> None:
    expression = data.draw(chains(FOR_INTEGERS))
    arrays = [data.draw(operand(shape, data.draw(st.sampled_from([compute, compute, BOOL]))))
              for _ in NAMES]  # fmt: skip
    check(expression, arrays, compute)


@FEW
@given(data=st.data(), shape=shapes)
def test_chains_of_bools(data: Any, shape: tuple[int, ...]) -> None:
    expression = data.draw(chains(FOR_BOOLS))
    check(expression, [data.draw(operand(shape, BOOL)) for _ in NAMES], BOOL)


@FEW
@given(data=st.data(), shape=shapes, source=st.sampled_from([*FLOATS, *INTEGERS, BOOL]),
       target=st.sampled_from([*FLOATS, *INTEGERS, BOOL]))  # fmt: skip
def test_conversions(data: Any, shape: tuple[int, ...], source: Any, target: Any) -> None:
    array = data.draw(operand(shape, source))
    if source.kind in "fV" and target.kind in "iu":
        array = np.asarray(np.nan_to_num(array.astype(np.float64), nan=3, posinf=9, neginf=0))
        array = array.astype(source)
    with np.errstate(all="ignore"):
        wide = array.astype(np.float32) if source.kind == "V" else array
        if target.kind in "iu" and wide.dtype.kind == "f" and target.itemsize < 4:
            wide = wide.astype(np.int32)
        if target.itemsize == 2 and target.kind in "fV":  # float64 is rounded to float32 before
            wide = wide.astype(np.float32)
        expected = np.broadcast_to(wide.astype(target), shape)
    out = data.draw(operand(shape, target)).copy()
    if out.shape != shape:
        out = np.empty(shape, target)
    original = choice.LIMITS["pointwise"]
    choice.LIMITS["pointwise"] = 0
    try:
        done = copies.convert(out, array)
    finally:
        choice.LIMITS["pointwise"] = original
    assert done
    same(out, expected)


FUNCTIONS = {"exp": np.exp, "log": np.log, "tanh": np.tanh, "expm1": np.expm1, "log1p": np.log1p,
             "sigmoid": lambda x: 1 / (1 + np.exp(-x))}  # fmt: skip


@pytest.mark.parametrize("word", FUNCTIONS)
def test_functions_are_accurate(word: str) -> None:
    x = np.linspace(0.001, 20, 5000, dtype=np.float32)
    fusion = Fusion("test", [Expr(word, parameter("a"))], ["a"], x.dtype, [x.dtype])
    (result,) = fusion.run([x])
    exact = FUNCTIONS[word](x.astype(np.float64))
    assert (np.abs(result - exact) <= 4 * np.spacing(np.abs(exact).astype(np.float32))).all()


def test_in_place_and_broadcast() -> None:
    rng = np.random.default_rng(0)
    a, b = values(rng, (50, 33), np.dtype("f4")), values(rng, (33,), np.dtype("f4"))
    with np.errstate(all="ignore"):
        expected = a * b + b
    fusion = Fusion("test", [parameter("a") * parameter("b") + parameter("b")], ["a", "b"],
                    a.dtype, [a.dtype])  # fmt: skip
    (result,) = fusion.run([a, b], (a,))
    assert result is a
    same(a, expected)


def test_operands_that_lie_across_the_result_are_left_to_numpy() -> None:
    memory = np.arange(100, dtype=np.float32)
    fusion = Fusion("test", [parameter("a") + 1], ["a"], memory.dtype, [memory.dtype])
    assert fusion.run([memory[:-1]], (memory[1:],)) is None
    assert fusion.run([memory[1:]], (memory[1:],)) is not None


def test_results_in_strided_memory() -> None:
    memory = np.zeros((40, 30), np.float32)
    x = np.random.default_rng(1).standard_normal((20, 15)).astype(np.float32)
    fusion = Fusion("test", [-parameter("a")], ["a"], x.dtype, [x.dtype])
    for target in (memory[::2, ::2], memory.T[:20, :15], memory[:20, 15:]):
        fusion.run([x], (target,))
        same(target, -x)


LARGE = 1 << 16


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "exp", "sqrt", "rsqrt", "abs", "square"])
def test_large_gradients_are_those_of_small_tensors(name: str) -> None:
    x = torch.rand(LARGE) + 0.1
    whole = x.clone().requires_grad_()
    getattr(torch, name)(whole).sum().backward()
    part = x[:100].clone().requires_grad_()
    getattr(torch, name)(part).sum().backward()
    assert torch.allclose(whole.grad[:100], part.grad, rtol=1e-6)


@pytest.mark.parametrize("exponent", [-2, -1.5, -1, 0, 0.5, 1, 1.25, 2, 2.5, 3, 4, 7])
def test_large_gradients_of_powers(exponent: float) -> None:
    x = (torch.rand(LARGE, dtype=torch.float64) + 0.5).requires_grad_()
    (x**exponent).sum().backward()
    expected = exponent * x.detach().numpy() ** (exponent - 1)
    np.testing.assert_allclose(x.grad.numpy(), expected, 1e-14)


def test_fused_formulas_can_be_differentiated_again() -> None:
    x = (torch.rand(LARGE, dtype=torch.float64) + 0.5).requires_grad_()
    (first,) = torch.autograd.grad(x.sigmoid().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    s = x.detach().sigmoid()
    assert torch.allclose(second, s * (1 - s) * (1 - 2 * s))


def test_add_with_a_factor() -> None:
    for size in (5, LARGE):
        x, y = torch.rand(size), torch.rand(size)
        expected = x.numpy() + y.numpy() * np.float32(0.3)
        assert np.array_equal(torch.add(x, y, alpha=0.3).numpy(), expected)
        assert np.array_equal(x.add_(y, alpha=0.3).numpy(), expected)
        assert x._version == 1


@pytest.mark.parametrize("word", ["power", "arctan2", "maximum", "copysign"])
def test_functions_of_an_array_and_a_number(word: str) -> None:
    x = np.linspace(0.5, 3, 100, dtype=np.float32)
    fusion = Fusion("test", [Expr(word, parameter("a"), parameter("b"))], ["a", "b"], x.dtype,
                    [x.dtype])  # fmt: skip
    for arrays in ([x, np.float32(1.5)], [np.float32(1.5), x]):
        arrays = [np.asarray(array) for array in arrays]
        (result,) = fusion.run(arrays)
        exact = getattr(np, word)(*[array.astype(np.float64) for array in arrays])
        assert np.allclose(result, exact, rtol=1e-6)
