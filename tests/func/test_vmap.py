"""`vmap` beside a loop, and what may not leave it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import flambeau as torch
from flambeau._core import modes

func = torch.func


def test_as_a_loop() -> None:
    x = torch.randn(4, 3)
    found = torch.vmap(lambda a: (a.cumsum(0) * a.max()).softmax(-1))(x)
    each = [(a.cumsum(0) * a.max()).softmax(-1) for a in x]
    assert torch.allclose(found, torch.stack(each))


def test_nothing_is_left_behind() -> None:
    def fails(a: Any) -> Any:
        raise KeyError("x")

    with pytest.raises(KeyError):
        torch.vmap(fails)(torch.ones(2))
    with pytest.raises(RuntimeError):
        torch.vmap(lambda a: torch.rand(2))(torch.ones(2))
    assert modes.stacks.levels == []
    assert modes.stacks.refusals == 0
    assert modes.watch.active == 0
    assert torch.rand(2).shape == (2,)


@pytest.mark.parametrize("size", [1, 100_000])
def test_an_example_is_of_no_use_outside(size: int) -> None:
    """Neither NumPy nor a kernel takes its numbers for those of the batch."""
    kept: list[Any] = []
    torch.vmap(lambda a: kept.append(a) or a)(torch.ones(3, size))  # type: ignore[func-returns-value]
    for use in (lambda x: x + 1, lambda x: x.sum(), lambda x: x.softmax(0), lambda x: x @ x):
        with pytest.raises(RuntimeError, match="stands for all|item"):
            use(kept[0])


def test_writes_reach_the_batch() -> None:
    x = torch.arange(6.0).view(2, 3)

    def double(a: Any) -> Any:
        a[1:].mul_(2)
        return a

    found = torch.vmap(double)(x)
    assert x.tolist() == [[0, 2, 4], [3, 8, 10]] == found.tolist()


def test_threads_do_not_meet() -> None:
    found: dict[int, Any] = {}

    def run(number: int) -> None:
        for _ in range(20):
            x = torch.full((number + 2, 3), float(number))
            found[number] = torch.vmap(func.grad(lambda a: (a**2).sum()))(x)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, result in found.items():
        assert result.tolist() == [[2.0 * number] * 3] * (number + 2)
