"""The CPU random streams against torch: the same bits, and the same state afterwards."""

# ruff: noqa: B023 - the functions made in loops are called before the loop goes on

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau._core import random_fill, random_integer, random_sample
from flambeau._core.generator import Generator

pytestmark = pytest.mark.filterwarnings("ignore:.*out of bounds.*:UserWarning")

HALVES = ["float16", "bfloat16"]
FLOATS = [*HALVES, "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
SIGNED = ["uint8", "int8", "int16", "int32", "int64"]
UNSIGNED = ["uint16", "uint32", "uint64"]
SEEDS = [0, 1, 12345, -1]
# Sizes around the switches: one element, pairs, blocks of 16 and 624, chunks of 16384.
SIZES = [(1,), (5,), (15,), (16,), (17,), (3, 33), (623,), (624,), (1000,), (40001,)]
# (shape, order of dims): not contiguous, filled in the order of memory
PERMUTED = [((3, 4), (1, 0)), ((6, 7, 5), (2, 0, 1)), ((2, 8, 3, 3), (0, 2, 3, 1))]

TorchDraw = Callable[[torch.Generator], torch.Tensor]
Draw = Callable[[Generator], np.ndarray]


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def assert_same_stream(
    torch_draw: TorchDraw, draw: Draw, seed: int, prepare: int = 0
) -> np.ndarray:
    """Both draw from one seed, after ``prepare`` normals: same values, same next numbers."""
    theirs = torch.Generator().manual_seed(seed)
    ours = Generator().manual_seed(seed)
    if prepare:
        torch.randn(prepare, generator=theirs)
        random_fill.normal_(np.empty(prepare, np.float32), 0.0, 1.0, ours)
    expected = to_numpy(torch_draw(theirs))
    result = draw(ours)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(ours.get_state(), theirs.get_state().numpy())
    follow = torch.rand(5, generator=theirs).numpy()
    np.testing.assert_array_equal(ours.units(5), follow)
    return result


def assert_same_fill(
    name: str,
    torch_fill: Callable[[torch.Tensor, torch.Generator], torch.Tensor],
    fill: Callable[[np.ndarray, Generator], np.ndarray],
    shapes: list[tuple[int, ...]] = SIZES,
) -> None:
    dtype = getattr(torch, name)
    for shape in shapes:
        for seed in SEEDS:
            assert_same_stream(
                lambda generator: torch_fill(torch.empty(shape, dtype=dtype), generator),
                lambda generator: fill(np.empty(shape, numpy_dtype(name)), generator),
                seed,
            )
    for shape, dims in PERMUTED:
        assert_same_stream(
            lambda generator: torch_fill(torch.empty(shape, dtype=dtype).permute(dims), generator),
            lambda generator: fill(np.empty(shape, numpy_dtype(name)).transpose(dims), generator),
            3,
        )


@pytest.mark.parametrize("seed", [0, 1, -1, 42, 2**32 + 7, 2**63, -(2**63), 2**64 - 1])
def test_seeds_and_states_are_interchangeable(seed: int) -> None:
    theirs = torch.Generator().manual_seed(seed)
    ours = Generator().manual_seed(seed)
    assert ours.initial_seed() == theirs.initial_seed()
    for count in (0, 1, 3, 620, 624, 700, 2000, 5):
        np.testing.assert_array_equal(ours.get_state(), theirs.get_state().numpy())
        moved = Generator().set_state(theirs.get_state().numpy())
        expected = torch.rand(count, generator=theirs).numpy()
        np.testing.assert_array_equal(ours.units(count), expected)
        np.testing.assert_array_equal(moved.units(count), expected)
        back = torch.Generator()
        back.set_state(torch.from_numpy(ours.get_state()))
        assert torch.equal(
            torch.rand(9, generator=back), torch.from_numpy(ours.clone_state().units(9))
        )


def test_the_waiting_normal_is_part_of_the_state() -> None:
    theirs = torch.Generator().manual_seed(8)
    torch.randn(3, generator=theirs)
    ours = Generator().set_state(theirs.get_state().numpy())
    np.testing.assert_array_equal(ours.get_state(), theirs.get_state().numpy())
    result = random_fill.normal_(np.empty(1), 0.0, 1.0, ours)
    assert result[0] == torch.randn(1, dtype=torch.float64, generator=theirs).item()


@pytest.mark.parametrize("bounds", [(0, 1), (-1, 1), (0.1, 0.7), (-3e-3, 5.0), (2.0, 2.0)])
@pytest.mark.parametrize("name", [*FLOATS, *COMPLEX])
def test_uniform(name: str, bounds: tuple[float, float]) -> None:
    assert_same_fill(
        name,
        lambda tensor, generator: tensor.uniform_(*bounds, generator=generator),
        lambda out, generator: random_fill.uniform_(out, *bounds, generator),
    )


@pytest.mark.parametrize("params", [(0, 1), (0.3, 1), (0, 0.02), (-1.7, 3.3), (5, 0)])
@pytest.mark.parametrize("name", [*FLOATS, *COMPLEX])
def test_normal(name: str, params: tuple[float, float]) -> None:
    assert_same_fill(
        name,
        lambda tensor, generator: tensor.normal_(*params, generator=generator),
        lambda out, generator: random_fill.normal_(out, *params, generator),
    )


@given(st.integers(0, 2**64 - 1), st.integers(1, 90), st.integers(0, 9), st.sampled_from(FLOATS))
@settings(max_examples=200, deadline=None)
def test_normal_after_normals(seed: int, size: int, before: int, name: str) -> None:
    assert_same_stream(
        lambda generator: torch.randn(size, dtype=getattr(torch, name), generator=generator),
        lambda generator: random_fill.normal_(np.empty(size, numpy_dtype(name)), 0, 1, generator),
        seed,
        before,
    )


def test_a_million_normals() -> None:
    assert_same_stream(
        lambda generator: torch.randn(1_000_003, generator=generator),
        lambda generator: random_fill.normal_(np.empty(1_000_003, np.float32), 0, 1, generator),
        2024,
    )


@pytest.mark.parametrize("name", [*FLOATS, *SIGNED, "bool"])
def test_random_without_bounds(name: str) -> None:
    assert_same_fill(
        name,
        lambda tensor, generator: tensor.random_(generator=generator),
        random_integer.random_,
    )


BOUNDS = [
    (0, 1),
    (0, 2),
    (0, 10),
    (-5, 100),
    (0, 255),
    (0, 2001),
    (0, 60000),
    (0, 65504),
    (0, 2**27),
    (0, 2**28 - 1),
    (0, 2**28),
    (-7, 2**28),
    (3, 2**31 + 5),
    (0, 2**32),
    (-(2**40), 2**50),
    (-(2**63), 2**63 - 1),
    (5, 5),
    (5, None),
    (-100, None),
    (-(2**63), None),
]


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("name", [*FLOATS, *SIGNED, *UNSIGNED, "bool"])
def test_random_from_to(name: str, bounds: tuple[int, int | None]) -> None:
    dtype = getattr(torch, name)
    try:
        torch.empty(3, dtype=dtype).random_(*bounds)
    except RuntimeError as error:
        with pytest.raises(type(error)) as caught:
            random_integer.random_from_to_(np.empty(3, numpy_dtype(name)), *bounds, Generator())
        assert str(caught.value) == str(error).splitlines()[0]
        return
    assert_same_fill(
        name,
        lambda tensor, generator: tensor.random_(*bounds, generator=generator),
        lambda out, generator: random_integer.random_from_to_(out, *bounds, generator),
        [(1,), (40,), (700,), (17000,)],
    )


@pytest.mark.parametrize("probability", [0, 0.1, 0.5, 1 / 3, 0.7, 1])
@pytest.mark.parametrize("name", [*FLOATS, *SIGNED, "bool"])
def test_bernoulli(name: str, probability: float) -> None:
    assert_same_fill(
        name,
        lambda tensor, generator: tensor.bernoulli_(probability, generator=generator),
        lambda out, generator: random_fill.bernoulli_(out, probability, generator),
    )


@pytest.mark.parametrize("size", [1, 7, 100, 20000])
@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5, 0.9])
def test_dropout_masks(size: int, probability: float) -> None:
    torch.manual_seed(6)
    dropped = torch.nn.functional.dropout(torch.ones(size), probability)
    mask = random_fill.bernoulli_(
        np.empty(size, np.float32), 1 - probability, Generator().manual_seed(6)
    )
    np.testing.assert_array_equal(dropped.numpy() != 0, mask != 0)


@pytest.mark.parametrize("probability_name", FLOATS)
@pytest.mark.parametrize("name", [*FLOATS, "int64", "bool"])
def test_bernoulli_of_a_tensor(name: str, probability_name: str) -> None:
    source = torch.Generator().manual_seed(5)
    for shape in SIZES:
        chances = torch.rand(shape, generator=source).to(getattr(torch, probability_name))
        assert_same_stream(
            lambda generator: torch.empty(shape, dtype=getattr(torch, name)).bernoulli_(
                chances, generator=generator
            ),
            lambda generator: random_fill.bernoulli_tensor_(
                np.empty(shape, numpy_dtype(name)), to_numpy(chances), generator
            ),
            4,
        )
    chances = torch.rand(6, 7, generator=source).to(getattr(torch, probability_name))
    assert_same_stream(
        lambda generator: torch.empty(7, 6).t().bernoulli_(chances, generator=generator),
        lambda generator: random_fill.bernoulli_tensor_(
            np.empty((7, 6), np.float32).T, to_numpy(chances), generator
        ),
        4,
    )


TRANSFORMS = [
    ("exponential_", (1.0,)),
    ("exponential_", (0.3,)),
    ("exponential_", (7.0,)),
    ("cauchy_", (0.0, 1.0)),
    ("cauchy_", (0.3, 2.7)),
    ("log_normal_", (1.0, 2.0)),
    ("log_normal_", (0.3, 2.7)),
    ("geometric_", (0.02,)),
    ("geometric_", (0.9,)),
]


@pytest.mark.parametrize(("method", "params"), TRANSFORMS)
@pytest.mark.parametrize("name", FLOATS)
def test_transforms(name: str, method: str, params: tuple[float, ...]) -> None:
    assert_same_fill(
        name,
        lambda tensor, generator: getattr(tensor, method)(*params, generator=generator),
        lambda out, generator: getattr(random_fill, method)(out, *params, generator),
    )


@pytest.mark.parametrize("name", SIGNED)
def test_geometric_integers(name: str) -> None:
    assert_same_fill(
        name,
        lambda tensor, generator: tensor.geometric_(0.02, generator=generator),
        lambda out, generator: random_fill.geometric_(out, 0.02, generator),
    )


@pytest.mark.parametrize("size", [0, 1, 2, 10, 100, 127, 1000, 1001, 3000, 60000])
@pytest.mark.parametrize("name", ["int64", "int32", "float32", "bfloat16"])
def test_randperm(name: str, size: int) -> None:
    for seed in SEEDS:
        assert_same_stream(
            lambda generator: torch.randperm(size, dtype=getattr(torch, name), generator=generator),
            lambda generator: random_sample.randperm(size, numpy_dtype(name), generator),
            seed,
        )


@pytest.mark.parametrize(
    ("size", "name"),
    [
        (-1, "int64"),
        (257, "uint8"),
        (129, "int8"),
        (32769, "int16"),
        (2050, "float16"),
        (2**24 + 2, "float32"),
        (4, "bool"),
    ],
)
def test_randperm_errors(size: int, name: str) -> None:
    with pytest.raises(RuntimeError) as expected:
        torch.randperm(size, dtype=getattr(torch, name))
    with pytest.raises(type(expected.value)) as caught:
        random_sample.randperm(size, numpy_dtype(name), Generator())
    assert str(caught.value) == str(expected.value).splitlines()[0]


@pytest.mark.parametrize("count_and_replacement", [(1, False), (1, True), (3, False), (40, True)])
@pytest.mark.parametrize("shape", [(5,), (100,), (3, 50), (2, 5000)])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_multinomial(
    name: str, shape: tuple[int, ...], count_and_replacement: tuple[int, bool]
) -> None:
    weights = torch.rand(shape, generator=torch.Generator().manual_seed(9))
    weights = weights.to(getattr(torch, name))
    for seed in SEEDS:
        assert_same_stream(
            lambda generator: torch.multinomial(
                weights, *count_and_replacement, generator=generator
            ),
            lambda generator: random_sample.multinomial(
                weights.numpy(), *count_and_replacement, generator
            ),
            seed,
        )


def test_multinomial_of_a_transposed_matrix() -> None:
    weights = torch.rand(50, 4, generator=torch.Generator().manual_seed(9)).t()
    for count, replacement in ((1, False), (3, False), (7, True)):
        assert_same_stream(
            lambda generator: torch.multinomial(weights, count, replacement, generator=generator),
            lambda generator: random_sample.multinomial(
                weights.numpy(), count, replacement, generator
            ),
            1,
        )


@pytest.mark.parametrize(
    ("weights", "count", "replacement"),
    [
        ([0.0, 0.0], 1, False),
        ([1.0, -1.0], 1, False),
        ([1.0, -1.0], 2, True),
        ([0.0, 0.0], 2, True),
        ([float("inf"), 0.0], 2, True),
        ([float("nan"), 0.0], 1, True),
        ([0.0, 0.0], 3, False),
        ([1.0, 0.0], 0, False),
        ([1, 0], 1, False),
        ([[[1.0]]], 1, False),
    ],
)
def test_multinomial_errors(weights: list[float], count: int, replacement: bool) -> None:
    with pytest.raises(RuntimeError) as expected:
        torch.multinomial(torch.tensor(weights), count, replacement)
    with pytest.raises(RuntimeError) as caught:
        random_sample.multinomial(torch.tensor(weights).numpy(), count, replacement, Generator())
    assert str(caught.value) == str(expected.value).splitlines()[0]


@pytest.mark.parametrize("scale", [0.0, 0.5, 5.0, 20.0, 300.0, 60000.0])
@pytest.mark.parametrize("name", FLOATS)
def test_poisson(name: str, scale: float) -> None:
    rates = torch.rand(40, 25, generator=torch.Generator().manual_seed(9)) * scale
    rates = rates.to(getattr(torch, name))
    for layout in (rates, rates.t()):
        assert_same_stream(
            lambda generator: torch.poisson(layout, generator=generator),
            lambda generator: random_sample.poisson(to_numpy(layout), generator),
            7,
        )


@pytest.mark.parametrize("scale", [0.5, 5.0, 20.0, 300.0])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_gamma_binomial_dirichlet(name: str, scale: float) -> None:
    source = torch.Generator().manual_seed(9)
    alphas = (torch.rand(40, 25, generator=source) * scale).to(getattr(torch, name))
    chances = torch.rand(40, 25, generator=source).to(getattr(torch, name))
    counts = alphas.floor()
    for seed in SEEDS:
        assert_same_stream(
            lambda generator: torch._standard_gamma(alphas, generator=generator),
            lambda generator: random_sample.standard_gamma(alphas.numpy(), generator),
            seed,
        )
        assert_same_stream(
            lambda generator: torch.binomial(counts, chances, generator=generator),
            lambda generator: random_sample.binomial(counts.numpy(), chances.numpy(), generator),
            seed,
        )
    # the sum over the last dim is rounded in another order than torch's
    result = random_sample.dirichlet(alphas.numpy(), Generator().manual_seed(1))
    expected = torch._sample_dirichlet(alphas, generator=torch.Generator().manual_seed(1))
    np.testing.assert_array_max_ulp(result, expected.numpy(), 4)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_rrelu_noise(name: str) -> None:
    values = torch.randn(1000, generator=torch.Generator().manual_seed(9))
    values = values.to(getattr(torch, name))

    def torch_noise(generator: torch.Generator) -> torch.Tensor:
        noise = torch.empty_like(values)
        torch._C._nn.rrelu_with_noise(values, noise, 0.125, 1 / 3, True, generator)
        return noise

    assert_same_stream(
        torch_noise,
        lambda generator: random_sample.rrelu_noise(values.numpy(), 0.125, 1 / 3, generator),
        2,
    )


def uniform_error(low: float, high: float, name: str = "float32") -> tuple[str, tuple, str]:
    return "uniform_", (low, high), name


ERRORS = [
    uniform_error(2, 1),
    uniform_error(-3e38, 3e38),
    uniform_error(0, 1e6, "float16"),
    uniform_error(0, 1, "int32"),
    ("normal_", (0.0, -1.0), "float32"),
    ("normal_", (0.0, 1.0), "int32"),
    ("bernoulli_", (1.5,), "float32"),
    ("bernoulli_", (0.5,), "complex64"),
    ("bernoulli_", (0.5,), "uint16"),
    ("exponential_", (-1.0,), "float32"),
    ("exponential_", (1.0,), "int32"),
    ("geometric_", (0.0,), "float32"),
    ("geometric_", (1.0,), "float32"),
    ("cauchy_", (0.0, -1.0), "float32"),
    ("cauchy_", (0.0, 1.0), "int32"),
    ("log_normal_", (0.0, -1.0), "float32"),
    ("log_normal_", (0.0, 1.0), "int32"),
]


@pytest.mark.parametrize(("method", "params", "name"), ERRORS)
def test_errors(method: str, params: tuple[float, ...], name: str) -> None:
    with pytest.raises(RuntimeError) as expected:
        getattr(torch.empty(3, dtype=getattr(torch, name)), method)(*params)
    with pytest.raises(type(expected.value)) as caught:
        getattr(random_fill, method)(np.empty(3, numpy_dtype(name)), *params, Generator())
    assert str(caught.value) == str(expected.value).splitlines()[0]


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1, 1.5, "a"])
def test_seed_errors(seed: object) -> None:
    with pytest.raises((RuntimeError, ValueError)) as expected:
        torch.Generator().manual_seed(seed)
    with pytest.raises(type(expected.value)) as caught:
        Generator().manual_seed(seed)
    assert str(caught.value) == str(expected.value).splitlines()[0]


@pytest.mark.parametrize("size", [3, 5056])
def test_state_errors(size: int) -> None:
    with pytest.raises(RuntimeError) as expected:
        torch.Generator().set_state(torch.zeros(size, dtype=torch.uint8))
    with pytest.raises(RuntimeError) as caught:
        Generator().set_state(np.zeros(size, np.uint8))
    assert str(caught.value) == str(expected.value).splitlines()[0]


def test_the_default_stream_is_a_generator():
    """Also where nothing was drawn before; its states are tensors."""
    lines = [
        "stream = torch.manual_seed(3)",
        "told = [isinstance(stream, torch.Generator), stream is torch.default_generator]",
        "state = stream.get_state()",
        "told += [type(state) is torch.Tensor, tuple(state.shape), str(state.dtype).split('.')[1]]",
        "first = torch.rand(2)",
        "stream.set_state(state)",
        "again = torch.rand(2, generator=stream)",
        "told += [torch.equal(first, again), first.tolist()]",
        "told.append(isinstance(stream.clone_state(), torch.Generator))",
        "print(told)",
    ]
    said = [
        subprocess.run([sys.executable, "-c", "\n".join([f"import {name} as torch", *lines])],
                       capture_output=True, text=True, check=True).stdout
        for name in ("torch", "flambeau")
    ]  # fmt: skip
    assert said[0] == said[1]
