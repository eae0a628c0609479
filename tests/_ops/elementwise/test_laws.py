"""What holds for every pointwise row: types, empty and 0-dim tensors, strides, in-place and `out=`.

Arguments come from `samples.py` (the domain of a row) or, for rows without a gradient, from their
parameters' types. Expected values come from float32 or contiguous runs, types from a table here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._ops.table import loading
from flambeau._ops.table.elementwise_path import make_inplace
from flambeau._ops.table.op import REGISTRY, Op
from flambeau._ops.table.pointwise import is_operand
from tests._ops.sample_values import Values
from tests._ops.samples import REFUSED, TABLE
from tests._ops.table.test_registry import function_of

loading.load_all()
POINTWISE = sorted(name for name, op in REGISTRY.items() if op.kind == "pointwise")
HALVES = {torch.float16: 10, torch.bfloat16: 7}  # bits of the significand after the point
INTEGERS_ONLY = frozenset(
    name for name in POINTWISE if "float" not in (REGISTRY[name].dtypes or "float")
)


def arguments(
    name: str, shape: tuple[int, ...], dtype: torch.dtype
) -> tuple[list[Any], dict[str, Any]]:
    """Positional arguments and keyword arguments for a row; every tensor has the given shape."""
    op = REGISTRY[name]
    sample = (TABLE.get(name) or [REFUSED.get(name)])[0]
    rng = np.random.default_rng(len(name))
    if sample is None:
        return [tensor(rng, Values(shape), dtype) for a in op.schema.arguments if a.is_tensor], {}
    args = [
        tensor(rng, Values(shape, value.low, value.high), dtype)
        if isinstance(value, Values)
        else value
        for value in sample.args
    ]
    return args, sample.kwargs


def tensor(rng: np.random.Generator, values: Values, dtype: torch.dtype) -> torch.Tensor:
    made = values.make(rng, False).detach()
    if dtype.is_floating_point or dtype.is_complex:
        return made.to(dtype)
    return (made * 2).ceil().abs().to(dtype)


def usable_dtype(op: Op) -> torch.dtype:
    """float64 where the row takes floats, else int64."""
    return torch.int64 if op.full_name in INTEGERS_ONLY else torch.float64


def array(value: torch.Tensor) -> np.ndarray:
    return value.detach().resolve_conj().numpy()


def same(left: torch.Tensor, right: torch.Tensor) -> bool:
    return left.dtype is right.dtype and np.array_equal(
        array(left), array(right), equal_nan=left.dtype.is_floating_point
    )


@pytest.mark.parametrize("name", POINTWISE)
def test_empty_and_zero_dim_tensors(name: str) -> None:
    dtype = usable_dtype(REGISTRY[name])
    for shape in ((0,), (2, 0, 3), ()):
        args, kwargs = arguments(name, shape, dtype)
        assert function_of(name)(*args, **kwargs).shape == shape


@pytest.mark.parametrize("name", POINTWISE)
def test_strides_do_not_matter(name: str) -> None:
    args, kwargs = arguments(name, (3, 4, 2), usable_dtype(REGISTRY[name]))
    expected = function_of(name)(*args, **kwargs)
    assert same(function_of(name)(*map(transposed, args), **kwargs), expected)
    assert same(function_of(name)(*map(spread, args), **kwargs), expected)
    assert same(function_of(name)(*map(reversed_in_memory, args), **kwargs), expected)


def transposed(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.permute(2, 0, 1).contiguous().permute(1, 2, 0)


def spread(value: Any) -> Any:
    """The same numbers in every second place of larger memory."""
    if not isinstance(value, torch.Tensor):
        return value
    large = torch.zeros(*value.shape[:-1], 2 * value.shape[-1], dtype=value.dtype)
    large[..., ::2] = value
    return large[..., ::2]


def reversed_in_memory(value: Any) -> Any:
    """Column-major memory."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.tensor(np.asfortranarray(array(value))).to(value.dtype)


@pytest.mark.parametrize("name", [name for name in POINTWISE if REGISTRY[name].inplace])
def test_in_place_is_the_same(name: str) -> None:
    op = REGISTRY[name]
    args, kwargs = arguments(name, (3, 4), usable_dtype(op))
    if not isinstance(args[0], torch.Tensor):
        pytest.skip("the first parameter is a number")
    expected = function_of(name)(*args, **kwargs)
    target, version = args[0].clone(), 0
    result = make_inplace(op)(target, *args[1:], **kwargs)
    assert result is target
    assert target._version > version
    assert target.dtype is args[0].dtype
    assert same(target, expected.to(target.dtype))


@pytest.mark.parametrize("name", [name for name in POINTWISE if REGISTRY[name].out])
def test_out_is_the_same(name: str) -> None:
    args, kwargs = arguments(name, (3, 4), usable_dtype(REGISTRY[name]))
    expected = function_of(name)(*args, **kwargs)
    out = torch.empty(3, 8, dtype=expected.dtype)[:, ::2]
    result = function_of(name)(*args, **kwargs, out=out)
    assert result is out
    assert out.stride() == (8, 2)
    assert same(out, expected)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", sorted(set(POINTWISE) - INTEGERS_ONLY))
def test_half_types_round_once(name: str, dtype: torch.dtype) -> None:
    """Within one unit in the last place of what float32 gives, rounded."""
    if not takes_halves(REGISTRY[name]):
        pytest.skip("not defined for half types")
    args, kwargs = arguments(name, (5, 20), dtype)
    wide = [a.float() if isinstance(a, torch.Tensor) else a for a in args]
    result = function_of(name)(*args, **kwargs)
    exact = function_of(name)(*wide, **kwargs)
    if exact.dtype is not torch.float32:
        assert same(result, exact)
        return
    assert result.dtype is dtype
    reference = array(exact).astype(np.float64)
    error = np.abs(array(result.float()).astype(np.float64) - reference)
    unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(reference), 2.0**-14))) - HALVES[dtype])
    assert (error <= unit).all()


def takes_halves(op: Op) -> bool:
    return not op.dtypes or "float" in op.dtypes.split()


RESULT_OF = {
    "default": lambda dtype: dtype,
    "tensors": lambda dtype: dtype,
    "float": lambda dtype: dtype if dtype.is_floating_point else torch.float32,
    "bool": lambda dtype: torch.bool,
    "int": lambda dtype: torch.int64 if dtype is torch.bool else dtype,
}


@pytest.mark.parametrize("name", [n for n in POINTWISE if not n.startswith("_")])
def test_types_of_results(name: str) -> None:
    op = REGISTRY[name]
    only_tensors = all(a.is_tensor for a in op.schema.arguments if is_operand(a))
    for dtype in (torch.bool, torch.uint8, torch.int32, torch.int64, torch.float32, torch.float64):
        word = "bool" if dtype is torch.bool else "float" if dtype.is_floating_point else "int"
        if (op.dtypes and word not in op.dtypes.split()) or not only_tensors:
            continue
        args, kwargs = arguments(name, (2, 3), dtype)
        assert result_type(name, args, kwargs) is RESULT_OF[op.promote](dtype)


def result_type(name: str, args: list[Any], kwargs: dict[str, Any]) -> torch.dtype:
    try:
        return function_of(name)(*args, **kwargs).dtype
    except RuntimeError as error:  # integer division by a zero
        pytest.skip(str(error))


PAIRS = [
    ("bool", "int8", "int8"), ("uint8", "int8", "int16"), ("int32", "int64", "int64"),
    ("int64", "float16", "float16"), ("float16", "bfloat16", "float32"),
    ("float32", "float64", "float64"), ("bool", "float32", "float32"),
    ("float64", "complex64", "complex128"), ("int64", "complex64", "complex64"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "common"), PAIRS)
def test_two_types_meet(left: str, right: str, common: str) -> None:
    a = torch.ones(2, dtype=getattr(torch, left))
    b = torch.ones(2, dtype=getattr(torch, right))
    for function in (torch.add, torch.mul):
        assert function(a, b).dtype is getattr(torch, common)
        assert function(b, a).dtype is getattr(torch, common)


@pytest.mark.parametrize(
    ("target", "other", "alpha"), [("int64", "int8", 3), ("float64", "bfloat16", 0.1)]
)
def test_alpha_multiplies_in_the_common_type(target: str, other: str, alpha: float) -> None:
    x, y = torch.zeros(1, dtype=getattr(torch, target)), torch.full((1,), 100.0)
    y = y.to(getattr(torch, other))
    assert torch.add(x, y, alpha=alpha).item() == 100 * alpha
    assert x.sub_(y, alpha=alpha).item() == -100 * alpha
