"""Products of ours start no threads of NumPy's BLAS once the pool has its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

import flambeau as torch
from flambeau._ops.products import blas
from flambeau._runtime import blas_threads, threads


class Library:
    """A BLAS of four threads that notes what it is told."""

    def __init__(self) -> None:
        self.number = 4
        self.told: list[int] = []

    def get(self) -> int:
        return self.number

    def put(self, number: int) -> None:
        self.number = number
        self.told.append(number)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    found = Library()
    monkeypatch.setattr(blas_threads, "control", lambda: (found.get, found.put))
    monkeypatch.setattr(blas_threads, "functions", lambda: (found.get, found.put))
    monkeypatch.setattr(threads.Shared, "pool", threads.Shared.pool or threads.PythonPool())
    yield found
    assert blas_threads.Alone.inside == 0


def test_a_call_is_alone_and_the_number_comes_back(library: Library) -> None:
    assert blas_threads.alone(library.get) == 1
    assert library.number == 4


def test_calls_inside_each_other(library: Library) -> None:
    assert blas_threads.alone(blas_threads.alone, library.get) == 1
    assert library.told == [1, 4]


def test_a_call_that_fails_brings_the_number_back(library: Library) -> None:
    with pytest.raises(ValueError, match="not aligned"):
        blas_threads.alone(np.dot, np.ones((2, 3)), np.ones((2, 3)))
    assert library.number == 4


def test_calls_that_overlap(library: Library) -> None:
    entered, leave = threading.Event(), threading.Event()

    def long_call() -> int:
        entered.set()
        leave.wait(10)
        return library.get()

    seen: list[int] = []
    other = threading.Thread(target=lambda: seen.append(blas_threads.alone(long_call)))
    other.start()
    entered.wait(10)
    assert blas_threads.alone(library.get) == 1
    assert library.number == 1, "the other call is still inside"
    leave.set()
    other.join()
    assert seen == [1]
    assert library.number == 4


def test_without_a_pool_blas_keeps_its_threads(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads.Shared, "pool", None)
    assert blas_threads.alone(library.get) == 4
    assert blas_threads.always_alone(library.get) == 1
    assert library.number == 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("shapes", [((128, 512), (512, 10)), ((10, 3000), (3000, 40))])
def test_thin_products_of_a_step(
    library: Library, dtype: torch.dtype, shapes: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    left, right = (torch.randn(*shape, dtype=dtype) for shape in shapes)
    numbers = []
    name = "always_alone" if dtype.is_complex else "alone"
    original = getattr(blas, name)

    def watched(function: object, *arguments: object, **options: object) -> object:
        numbers.append(1)
        return original(function, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blas, name, watched)
        result = left @ right
    wanted = left.numpy().astype(np.complex128) @ right.numpy().astype(np.complex128)
    assert np.allclose(result.numpy(), wanted, atol=1e-3)
    assert numbers or blas.compiled(left.numpy().dtype, *shapes[0], shapes[1][1]) is not None


def test_the_functions_of_this_build() -> None:
    number = blas_threads.control()
    if number is None:
        pytest.skip("NumPy's BLAS has one thread here, or cannot be told")
    get, put = number
    before = get()
    put(1)
    assert get() == 1
    put(before)
    assert get() == before


def test_an_interruption_leaves_blas_its_threads(library: Library) -> None:
    """A signal's handler may raise as soon as BLAS was told."""
    tell = library.put

    def interrupted(number: int) -> None:
        tell(number)
        if len(library.told) == 1:
            raise KeyboardInterrupt

    library.put = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        blas_threads.alone(len, [])
    assert library.number == 4
    assert blas_threads.alone(lambda: library.number) == 1
    assert library.number == 4
