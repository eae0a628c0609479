"""Compiled fills draw the words, and give the bits, of the ones in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._core import random_fill, random_integer, random_sample
from flambeau._core.generator import Generator
from flambeau._ops.random import launch as kernels

SIZES = [1, 15, 16, 17, 623, 624, 625, 1300, 5000, (1 << 18) + 37]
FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
WHOLE = [np.uint8, np.int8, np.int16, np.int32, np.int64, *FLOATS]
Fill = Callable[[np.ndarray, Generator], Any]

FILLS: dict[str, tuple[list[Any], Fill]] = {
    "uniform": (FLOATS, lambda out, g: random_fill.uniform_(out, 0.0, 1.0, g)),
    "uniform from -2 to 1": (FLOATS, lambda out, g: random_fill.uniform_(out, -2.0, 1.0, g)),
    "normal": (FLOATS, lambda out, g: random_fill.normal_(out, 0.0, 1.0, g)),
    "normal around 3": (FLOATS, lambda out, g: random_fill.normal_(out, 3.0, 0.3, g)),
    "bernoulli": ([*WHOLE, np.bool_], lambda out, g: random_fill.bernoulli_(out, 0.3, g)),
    "exponential": (FLOATS, lambda out, g: random_fill.exponential_(out, 1.7, g)),
    "below 100": (WHOLE, lambda out, g: random_integer.random_from_to_(out, 0, 100, g)),
    "one value": (WHOLE, lambda out, g: random_integer.random_from_to_(out, 5, 6, g)),
    "wide": ([np.int64], lambda out, g: random_integer.random_from_to_(out, -9, 1 << 61, g)),
    "everything": (WHOLE, random_integer.random_),
}


def with_numpy(out: np.ndarray, work: str = "random") -> None:
    """No kernels."""


def with_kernels(out: np.ndarray, work: str = "random") -> Any:
    """Kernels wherever they fit."""
    return kernels if kernels.fits(out) else None


def drawn(monkeypatch: pytest.MonkeyPatch, which: Any, fill: Callable[[Generator], Any]) -> Any:
    """What a fill gives from a stream that has begun, and the state behind it."""
    monkeypatch.setattr(random_fill.Compiled, "kernels", staticmethod(which))
    generator = Generator().manual_seed(1234)
    generator.words(5)
    return fill(generator).tobytes(), generator.get_state().tobytes(), generator.words(3).tolist()


CASES = [(name, dtype) for name, (dtypes, _) in FILLS.items() for dtype in dtypes]


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_fill(monkeypatch: pytest.MonkeyPatch, name: str, dtype: Any) -> None:
    """The same bits, and the same words left to draw."""
    fill = FILLS[name][1]
    for size in SIZES:
        results = []
        for which in (with_numpy, with_kernels):

            def fill_new(generator: Generator, size: int = size) -> np.ndarray:
                out = np.zeros(size, dtype)
                fill(out, generator)
                return out

            results.append(drawn(monkeypatch, which, fill_new))
        assert results[0] == results[1], size


def test_bernoulli_with_chances(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every element has its own chance."""
    chances = np.linspace(0, 1, 3000, dtype=np.float32).reshape(30, 100).T

    def fill(generator: Generator) -> np.ndarray:
        return random_fill.bernoulli_tensor_(np.zeros(chances.shape, bool), chances, generator)

    assert drawn(monkeypatch, with_numpy, fill) == drawn(monkeypatch, with_kernels, fill)


@pytest.mark.parametrize("size", [1, 2, 700, 5000])
def test_permutation(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """The swaps are the same."""

    def fill(generator: Generator) -> np.ndarray:
        return random_sample.randperm(size, np.dtype(np.int64), generator)

    found = drawn(monkeypatch, with_kernels, fill)
    assert found == drawn(monkeypatch, with_numpy, fill)
    assert sorted(np.frombuffer(found[0], np.int64).tolist()) == list(range(size))


def test_words() -> None:
    """Words are those of the engine, from any place of its block."""
    generators = [Generator().manual_seed(9), Generator().manual_seed(9)]
    for count in (3, 624, 1, 2000, 620, 624 * 3, 7):
        words = np.empty(count, np.uint32)
        kernels.fill_words(words, generators[0])
        assert np.array_equal(words, generators[1].words(count))


def samplers(dtype: Any, scale: float) -> dict[str, Callable[[Generator], np.ndarray]]:
    """The samplers that reject, over parameters up to a scale, with odd ones among them."""
    draw = np.random.RandomState(int(scale * 1000) % 9973)
    rates = (draw.rand(30, 41) * scale).astype(dtype).T
    chances = draw.rand(41, 30).astype(dtype)
    rates[:3, 0], chances[:3, 1] = [0, np.inf, 1], [0, 1, np.nan]
    counts = np.floor(rates)
    finite = np.where(np.isinf(counts), 3, counts).astype(dtype)
    return {
        "gamma": lambda g: random_sample.standard_gamma(rates, g),
        "poisson": lambda g: random_sample.poisson(np.where(np.isinf(rates), 3, rates), g),
        "binomial": lambda g: random_sample.binomial(finite, chances, g),
        "dirichlet": lambda g: random_sample.dirichlet(chances[3:] + dtype(0.1), g),
    }


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0, 5000.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["gamma", "poisson", "binomial", "dirichlet"])
def test_samplers(monkeypatch: pytest.MonkeyPatch, name: str, dtype: Any, scale: float) -> None:
    """The same numbers, and the same stream behind them, with a normal number waiting or not."""
    draw = samplers(dtype, scale)[name]
    for waiting in (0, 1):

        def fill(generator: Generator, waiting: int = waiting) -> np.ndarray:
            generator.normals(waiting)
            return draw(generator)

        assert drawn(monkeypatch, with_kernels, fill) == drawn(monkeypatch, with_numpy, fill)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(7, 300), (301,), (64, 1), (5, 0)])
def test_multinomial(monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], dtype: Any) -> None:
    """The same places by weight, some of which are 0, and the same stream behind them."""
    weights = np.random.RandomState(5).rand(*shape[::-1]).T
    weights[..., ::3] *= shape[-1] == 1
    weights = weights.astype(dtype)
    results = []
    for which in (with_numpy, with_kernels):

        def fill(generator: Generator) -> np.ndarray:
            return random_sample.multinomial(weights, 400, True, generator)

        try:
            results.append(drawn(monkeypatch, which, fill))
        except RuntimeError as error:  # no weights at all
            results.append(str(error))
    assert results[0] == results[1]
    assert (shape[-1] == 0) == isinstance(results[0], str)


def test_weights_that_cannot_be_drawn_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first wrong row is refused when those before it are drawn."""
    for wrong in (-1.0, np.inf, np.nan, 0.0):
        weights = np.ones((6, 40))
        weights[4] *= 0 if wrong == 0 else 1
        weights[4, 7] = wrong
        found = []
        for which in (with_numpy, with_kernels):
            monkeypatch.setattr(random_fill.Compiled, "kernels", staticmethod(which))
            generator = Generator().manual_seed(3)
            with pytest.raises(RuntimeError, match="invalid multinomial distribution") as caught:
                random_sample.multinomial(weights, 5, True, generator)
            found.append((str(caught.value), generator.words(3).tolist()))
        assert found[0] == found[1]


def test_samplers_of_what_is_no_parameter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong rate is refused where it stands; no count is no number."""
    rates = np.full(40, 3.0)
    rates[20] = -1
    places = []
    for which in (with_numpy, with_kernels):
        monkeypatch.setattr(random_fill.Compiled, "kernels", staticmethod(which))
        generator = Generator().manual_seed(3)
        with pytest.raises(RuntimeError, match="invalid Poisson rate"):
            random_sample.poisson(rates, generator)
        places.append(generator.words(4).tolist())
        counts = np.array([np.nan, 5.0])
        drawn_counts = random_sample.binomial(counts, np.array([0.3, 0.3]), generator)
        assert np.isnan(drawn_counts[0])
        places.append(generator.get_state().tobytes())
    assert places[:2] == places[2:]
