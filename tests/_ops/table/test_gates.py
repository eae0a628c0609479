"""Gates: calls pass them when somebody is there, in the order of ranks, and never otherwise."""

from __future__ import annotations

import inspect
import sys
from itertools import permutations
from typing import Any

import pytest

from flambeau._core import modes
from flambeau._ops.table import gates
from flambeau._ops.table.ranks import Rank
from flambeau._ops.table.redirection import Redirection
from flambeau._ops.table.twins import twin


@pytest.fixture
def watched() -> Any:
    modes.watch.results += 1
    yield
    modes.watch.results -= 1


def made() -> Any:
    """A new function, with a variable of its own."""
    number = 10

    def function(x: int, by: int = 2, *, plus: int = 1) -> int:
        return x * by + plus + number

    return function


def noting(said: list[Any], word: Any) -> Any:
    def through(before: Any, args: Any, kwargs: Any) -> Any:
        said.append(word)
        return before(*args, **kwargs)

    return through


def test_nobody_is_asked_while_nothing_is_on() -> None:
    function, said = made(), []
    gates.add(function, Rank.LEVELS, noting(said, "batch"))
    assert (function(3), function(3, 5, plus=0), said) == (17, 25, [])


@pytest.mark.parametrize("order", list(permutations((Rank.CLASSES, Rank.LEVELS, Rank.METHODS))))
def test_handlers_are_asked_by_rank_whoever_came_first(order: Any, watched: None) -> None:
    function, said = made(), []
    for rank in order:
        gates.add(function, rank, noting(said, rank))
        gates.add(function, rank, noting(said, "a second time"))
    assert function(3, plus=0) == 16
    assert said == [Rank.CLASSES, Rank.LEVELS, Rank.METHODS]


class Other:
    """A class that may take part."""

    def __mul__(self, by: int) -> int:
        return by


def test_classes_are_asked_for_values_of_other_classes_alone() -> None:
    function, said = made(), []
    gates.add(function, Rank.CLASSES, noting(said, "class"))
    assert (function(3), said) == (17, [])
    assert (function(Other()), said) == (13, ["class"])
    assert (function(x=Other(), by=3), said) == (14, ["class"] * 2)


def test_who_takes_a_call_over_ends_it(watched: None) -> None:
    function, said = made(), []
    gates.add(function, Rank.METHODS, noting(said, "method"))
    gates.add(function, Rank.LEVELS, lambda before, args, kwargs: "taken")
    assert (function(3), said) == ("taken", [])


def test_a_gate_made_while_a_function_is_redirected_stays_when_it_is_left(watched: None) -> None:
    function, said, redirection = made(), [], Redirection()
    signature = inspect.signature(function)
    redirection.add(function, noting(said, "trace"))
    gates.add(function, Rank.LEVELS, noting(said, "batch"))
    assert (function(3), said) == (17, ["trace", "batch"])
    redirection.end()
    said.clear()
    assert (function(3), said) == (17, ["batch"])
    assert inspect.signature(function) == signature
    redirection.add(function, noting(said, "trace"))
    redirection.end()
    assert inspect.signature(function) == signature


def test_twins_share_the_handlers_that_ask_for_them(watched: None) -> None:
    function, said = made(), []
    early = twin(function, "early")
    gates.add(function, Rank.CLASSES, noting(said, "this one"))
    gates.add(function, Rank.LEVELS, noting(said, "all"), with_twins=True)
    late = twin(function, "late")
    assert (early(3), late(3), said) == (17, 17, ["all", "all"])
    assert function(3) == 17
    assert said[2:] == ["this one", "all"]
    assert inspect.signature(late) == inspect.signature(made())


def test_debuggers_may_read_the_variables_of_gates(watched: None) -> None:
    function = made()

    def look(frame: Any, event: str, arg: Any) -> Any:
        assert all(isinstance(name, str) for name in dict(frame.f_locals))
        return look

    gates.add(function, Rank.LEVELS, noting([], ""))
    gates.add(function, Rank.CLASSES, noting([], ""))
    before = sys.gettrace()
    sys.settrace(look)
    try:
        result = function(3)
    finally:
        sys.settrace(before)
    assert (result, inspect.getclosurevars(function).nonlocals) == (17, {"number": 10})


def test_what_is_no_python_function_is_left_alone() -> None:
    gates.add(len, Rank.LEVELS, noting([], ""))
    assert len("12") == 2
