"""Redirected functions: whoever calls them arrives, and they are themselves again afterwards."""

from __future__ import annotations

import inspect
import sys
from itertools import permutations
from typing import Any

import pytest

import flambeau as torch
from flambeau._ops.table import redirection as redirecting
from flambeau._ops.table.redirection import Redirection


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


def names_of_the_line(args: int, kwargs: int) -> Any:
    """A function that closes over the names of the line that takes its place, and a class."""
    through, before, known = 1, 2, 3

    class Holder:
        def function(self, x: int, *, y: int = 0) -> int:
            assert __class__ is Holder  # type: ignore[name-defined]
            return x + y + args + kwargs + through + before + known

    return Holder().function.__func__, Holder()


def look_at_all(frame: Any, event: str, arg: Any) -> Any:
    """A debugger that reads every variable of every frame, before every line."""
    assert all(isinstance(name, str) for name in dict(frame.f_locals))
    return look_at_all


def test_debuggers_may_read_the_variables_of_redirected_functions() -> None:
    function, holder = names_of_the_line(10, 100)
    arguments = [((holder, 1), {}), ((holder,), {"x": 1, "y": 5}), ((holder, "1"), {})]
    redirection, said = Redirection(), []

    def through(before: Any, args: Any, kwargs: Any) -> Any:
        caller = sys._getframe(1)
        said.append({name: dict(caller.f_locals)[name] for name in function.__code__.co_freevars})
        return before(*args, **kwargs)

    redirection.add(function, through)
    results, before = [], sys.gettrace()
    sys.settrace(look_at_all)
    try:
        for args, kwargs in arguments[:2]:
            results.append(function(*args, **kwargs))
        with pytest.raises(TypeError):
            function(*arguments[2][0])
    finally:
        sys.settrace(before)
    cells = inspect.getclosurevars(function).nonlocals
    redirection.end()
    assert results == [117, 122]
    assert said == [cells] * 3
    assert (cells["args"], cells["kwargs"], cells["through"]) == (10, 100, 1)


@pytest.mark.parametrize("count", range(5))
def test_every_number_of_closure_cells(count: int) -> None:
    values = {f"v{number}": number for number in range(count)}
    names = "".join(f"{name}, " for name in values)
    text = f"def make({names}):\n return lambda x: [{names}x]"
    scope: dict[str, Any] = {}
    exec(text, scope)
    function = scope["make"](**values)
    redirections = [Redirection(), Redirection()]
    for redirection in redirections:
        redirection.add(function, noting([], ""))
    before = sys.gettrace()
    sys.settrace(look_at_all)
    try:
        results = [function(9), function("9")]
    finally:
        sys.settrace(before)
        for redirection in redirections:
            redirection.end()
    assert results == [[*range(count), 9], [*range(count), "9"]]


def test_a_traced_program_may_be_debugged() -> None:
    """Under a trace and a profiler all operators are redirected; the debugger sees their frames."""
    before = sys.gettrace()
    sys.settrace(look_at_all)
    try:
        with torch.profiler.profile():
            traced = torch.jit.trace(lambda x: torch.relu(x.split(1)[0]) + 1, torch.ones(2, 2))
    finally:
        sys.settrace(before)
    assert traced(torch.ones(2, 2)).tolist() == [[2.0, 2.0]]


@pytest.mark.parametrize("step", ["keep_signature", "line"])
def test_what_was_interrupted_ends_with_the_others(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end left all of them redirected that came after one whose beginning was interrupted."""

    def interrupt(*arguments: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    said: list[str] = []
    first, second = closing_over(1), closing_over(2)
    redirection = Redirection()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(redirecting, step, interrupt)
        redirection.add(first, noting(said, "first"))
    redirection.add(second, noting(said, "second"))
    assert (first(1), second(1), said) == (2, 3, ["second"])
    redirection.end()
    assert (first(1), second(1), said) == (2, 3, ["second"])


def test_an_end_that_was_interrupted_can_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    take_out, taken = redirecting._take_out, []

    def interrupted(function: Any, before: Any) -> None:
        take_out(function, before)
        taken.append(function)
        if len(taken) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(redirecting, "_take_out", interrupted)
    said: list[str] = []
    functions = [closing_over(1), closing_over(2)]
    redirection = Redirection()
    for function in functions:
        redirection.add(function, noting(said, "called"))
    with pytest.raises(KeyboardInterrupt):
        redirection.end()
    redirection.end()
    assert [function(1) for function in functions] == [2, 3]
    assert said == []
