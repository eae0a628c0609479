"""Sobol' sequences: the same points as PyTorch's, plain and scrambled."""

from __future__ import annotations

import copy
import pickle
import random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="conformance compares with PyTorch itself")

import flambeau  # noqa: E402

LIBRARIES = (torch, flambeau)


def engines(*args: Any, **options: Any) -> list[Any]:
    return [library.quasirandom.SobolEngine(*args, **options) for library in LIBRARIES]


def same(expected: Any, actual: Any) -> None:
    assert str(actual.dtype) == str(expected.dtype)
    np.testing.assert_array_equal(actual.numpy(), expected.numpy())


def test_the_directions_of_every_dimension() -> None:
    expected, actual = engines(21201)
    same(expected.sobolstate, actual.sobolstate)
    same(expected.draw(3), actual.draw(3))


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 8, 20, 21, 37, 160, 1000])
def test_scrambled_points(dimension: int) -> None:
    expected, actual = engines(dimension, scramble=True, seed=dimension)
    for name in ("sobolstate", "shift", "quasi", "_first_point"):
        same(getattr(expected, name), getattr(actual, name))
    same(expected.draw(65), actual.draw(65))
    assert repr(actual) == repr(expected)


def test_scrambling_draws_from_the_default_stream() -> None:
    drawn = []
    for library in LIBRARIES:
        library.manual_seed(3)
        engine = library.quasirandom.SobolEngine(5, scramble=True)
        drawn.append((engine.draw(4), library.rand(2)))
    for expected, actual in zip(*drawn, strict=True):
        same(expected, actual)


def step(engine: Any, library: Any, name: str, n: int) -> Any:
    """One thing that is done with an engine; what it gives, or the kind and words of its error."""
    try:
        if name == "draw":
            return engine.draw(n)
        if name == "float64":
            return engine.draw(n, dtype=library.float64)
        if name == "out":
            out = library.ones(2, 2)
            assert engine.draw(n, out=out) is out
            return out
        if name == "base2":
            return engine.draw_base2(n % 4)
        return engine.reset().quasi if name == "reset" else engine.fast_forward(n).quasi
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("seed", range(40))
def test_programs_of_draws(seed: int) -> None:
    """Draws, leaps, resets, copies in any order."""
    chance = random.Random(seed)
    both = engines(chance.randint(1, 9), chance.random() < 0.5, seed)
    names = ["draw", "draw", "float64", "out", "base2", "reset", "forward"]
    for _ in range(12):
        name, n = chance.choice(names), chance.randint(1, 9)
        expected, actual = map(step, both, LIBRARIES, (name, name), (n, n))
        if isinstance(expected, tuple):
            assert actual == expected
        else:
            same(expected, actual)
        assert both[0].num_generated == both[1].num_generated
        if chance.random() < 0.2:
            both = [copy.deepcopy(one) for one in both]
        if chance.random() < 0.2:
            both[1] = pickle.loads(pickle.dumps(both[1]))


@pytest.mark.parametrize("dimension", [0, -1, 21202])
def test_refused_dimensions(dimension: int) -> None:
    for library in LIBRARIES:
        with pytest.raises(ValueError, match=r"for SobolEngine is \[1, 21201\]"):
            library.quasirandom.SobolEngine(dimension)


@pytest.mark.parametrize("name", ["int32", "float16", "bfloat16"])
def test_refused_types(name: str) -> None:
    said = []
    for library, engine in zip(LIBRARIES, engines(2), strict=True):
        engine.draw(2)
        with pytest.raises(NotImplementedError) as caught:
            engine.draw(2, dtype=getattr(library, name))
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_no_points_at_all() -> None:
    """PyTorch counts back from none before the first point and raises."""
    engine = flambeau.quasirandom.SobolEngine(3)
    assert engine.draw(0).shape == (0, 3)
    assert engine.num_generated == 0
    assert engine.draw(1).tolist() == [[0.0, 0.0, 0.0]]
