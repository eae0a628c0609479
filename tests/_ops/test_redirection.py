"""Redirected functions: whoever calls them arrives, and they are themselves again afterwards."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

import flambeau as torch
from flambeau._ops.redirection import Redirection


def scaled(x: int, by: int = 2, *, plus: int = 1) -> int:
    return x * by + plus


def closing_over(number: int) -> Any:
    def add(x: int) -> int:
        return x + number

    return add


def noting(said: list[str], word: str) -> Any:
    def through(before: Any, args: Any, kwargs: Any) -> Any:
        said.append(word)
        return before(*args, **kwargs)

    return through


def test_arguments_arrive_and_defaults_stay() -> None:
    seen = []

    def through(before: Any, args: Any, kwargs: Any) -> Any:
        seen.append((args, kwargs))
        return -before(*args, **kwargs)

    redirection, elsewhere = Redirection(), scaled
    redirection.add(scaled, through)
    assert (elsewhere(3), scaled(3, by=5, plus=0)) == (-7, -15)
    redirection.end()
    assert (elsewhere(3), seen) == (7, [((3,), {}), ((3,), {"by": 5, "plus": 0})])


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_several_end_in_any_order(order: tuple[int, ...]) -> None:
    function, said = closing_over(10), []
    code = function.__code__
    redirections = [Redirection() for _ in range(3)]
    for number, redirection in enumerate(redirections):
        redirection.add(function, noting(said, str(number)))
        redirection.add(function, noting(said, "a second time"))
    left = {0, 1, 2}
    for number in order:
        said.clear()
        assert function(1) == 11
        assert said == [str(n) for n in sorted(left, reverse=True)]
        redirections[number].end()
        left.remove(number)
    assert function.__code__ is code


def test_what_is_no_python_function_is_left_alone() -> None:
    redirection = Redirection()
    redirection.add(len, noting([], ""))
    redirection.add(None, noting([], ""))
    assert redirection.befores == {}


def test_a_recording_that_outlives_a_trace() -> None:
    profile = torch.profiler.profile()

    def program(x: torch.Tensor) -> torch.Tensor:
        profile.start()
        return torch.matmul(x, x)

    body = torch.matmul.__code__
    traced = torch.jit.trace(program, torch.eye(2), check_trace=False)
    torch.matmul(torch.eye(2), torch.eye(2))
    profile.stop()
    assert torch.matmul.__code__ is body
    assert "aten::matmul" in str(traced.graph)
    assert [event.name for event in profile.events()].count("aten::matmul") == 2
