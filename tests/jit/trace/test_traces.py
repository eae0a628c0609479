"""`torch.jit.trace`: what is recorded, what is followed, what is warned of."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from typing import Any

import pytest

import flambeau as torch
from flambeau.jit.errors import TracerWarning, TracingCheckError
from flambeau.nn.functional import relu as relu_by_name


def traced(function: Any, *inputs: Any, **options: Any) -> Any:
    return torch.jit.trace(function, inputs, **options)


def test_code_of_a_function() -> None:
    result = traced(lambda x, y: torch.relu(x @ y) / 2, torch.ones(2, 3), torch.ones(3, 2))
    assert "torch.relu(torch.matmul(x, y))" in result.code
    assert result(torch.ones(4, 3), torch.ones(3, 5)).shape == (4, 5)


def test_names_imported_before() -> None:
    """A function that a file has imported by name is recorded like any other."""
    assert "torch.relu(x)" in traced(lambda x: relu_by_name(x), torch.ones(2)).code


def test_operators_have_their_own_code_again() -> None:
    """A trace leaves nothing behind, also when the program raises."""
    before = {name: f.__code__ for name, f in vars(torch.Tensor).items() if hasattr(f, "__code__")}
    code = relu_by_name.__code__
    traced(lambda x: x + 1, torch.ones(2))
    with pytest.raises(ZeroDivisionError):
        traced(lambda x: x + 1 // 0, torch.ones(2))
    assert relu_by_name.__code__ is code
    for name, kept in before.items():
        assert getattr(torch.Tensor, name).__code__ is kept


def test_sizes_are_followed() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        n, m = x.shape
        return x.reshape(n * m // 2, -1) + torch.zeros(n * m // 2, 2) * n

    assert traced(f, torch.ones(2, 4))(torch.ones(6, 4)).shape == (12, 2)


def test_sizes_are_ints_to_the_program() -> None:
    seen: list[Any] = []

    def f(x: torch.Tensor) -> torch.Tensor:
        n = x.size(0)
        seen.extend([list(range(n)), [0, 1, 2][n - 1], f"{n:d}", (1, 2, 3)[n - 1]])
        return x

    traced(f, torch.ones(2), check_trace=False)
    assert seen[0] == [0, 1]
    assert seen[1:] == [1, "2", 2]


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
        self.head = torch.nn.Linear(4, 2)
        self.register_buffer("scale", torch.ones(2))

    def forward(self, x: torch.Tensor, twice: torch.Tensor) -> torch.Tensor:
        x = self.head(self.body(x)) * self.scale
        return x + torch.nn.functional.linear(twice, self.head.weight)


def test_modules_become_methods() -> None:
    net = Net()
    result = traced(net, torch.ones(2, 3), torch.ones(2, 4))
    assert "(body).forward(x, )" in result.code
    assert "head.weight" in result.code
    assert "torch.linear(" in result.head.code
    assert [name for name, _ in result.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert result.head.weight is net.head.weight
    x, y = torch.rand(5, 3), torch.rand(5, 4)
    assert torch.equal(result(x, y), net(x, y))


def test_gradients_reach_the_module() -> None:
    net = Net()
    result = traced(net, torch.ones(2, 3), torch.ones(2, 4))
    result(torch.ones(1, 3), torch.ones(1, 4)).sum().backward()
    assert net.head.weight.grad is not None


def test_a_module_that_runs_twice() -> None:
    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = torch.nn.Tanh()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.act(self.act(x) * 2)

    result = traced(Twice(), torch.ones(2))
    assert "forward1" in result.code
    assert "torch.tanh" in result.act.forward1.code


def test_containers() -> None:
    def f(pair: Any, more: Any) -> Any:
        return {"sum": pair[0] + more["a"], "pair": pair[1]}

    given = (torch.ones(2), torch.zeros(2)), {"a": torch.ones(2)}
    result = torch.jit.trace(f, given, strict=False)
    found = result((torch.ones(3), torch.zeros(3)), {"a": torch.ones(3)})
    assert found["sum"].tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="Encountering a dict at the output"):
        torch.jit.trace(f, given)


def test_scripts_keep_their_branches() -> None:
    result = traced(lambda x: positive(x) * 2, torch.ones(2))
    assert result(-torch.ones(2)).tolist() == [2, 2]


@torch.jit.script
def positive(x: torch.Tensor) -> torch.Tensor:
    if bool(x.sum() > 0):
        return x
    return -x


def test_branches_are_warned_of() -> None:
    with pytest.warns(TracerWarning, match="Converting a tensor to a Python boolean"):
        result = traced(lambda x: x if x.sum() > 0 else -x, torch.ones(2))
    assert result(-torch.ones(2)).tolist() == [-1, -1]


def test_chance_is_found_by_the_check() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        traced(lambda x: torch.nn.functional.dropout(x), torch.ones(50))
    text = "\n".join(str(w.message) for w in caught)
    assert "nondeterministic nodes" in text
    assert "does not match" in text


def test_a_program_that_changes_is_found_by_the_check() -> None:
    calls = []

    def f(x: torch.Tensor) -> torch.Tensor:
        calls.append(x)
        return x + 1 if len(calls) == 1 else x * 2

    with pytest.raises(TracingCheckError, match="Graphs differed"):
        traced(f, torch.ones(2))


def test_what_requires_grad_has_to_be_a_parameter() -> None:
    weight = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Cannot insert a Tensor that requires grad"):
        traced(lambda x: x * (weight * 2), torch.ones(2))


def test_other_threads_are_not_recorded() -> None:
    other: list[Any] = []

    def f(x: torch.Tensor) -> torch.Tensor:
        thread = threading.Thread(target=lambda: other.append(torch.ones(2) + 1))
        thread.start()
        thread.join()
        return x * 2

    result = traced(f, torch.ones(2), check_trace=False)
    assert "torch.add" not in result.code
    assert other[0].tolist() == [2, 2]


def test_keyword_inputs() -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x - y

    given = {"y": torch.ones(2), "x": torch.zeros(2)}
    result = torch.jit.trace(f, example_kwarg_inputs=given)
    assert result(y=torch.ones(2), x=torch.zeros(2)).tolist() == [-1, -1]


def test_several_methods() -> None:
    class Both(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

        def other(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    x = torch.ones(2)
    result = torch.jit.trace_module(Both(), {"forward": x, "other": x})
    assert result(x).tolist() == [2, 2]
    assert result.other(x).tolist() == [2, 2]


def test_autocast_leaves_its_casts() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return x @ x

    assert "torch.to" in traced(f, torch.ones(2, 2), check_trace=False).code


def test_the_function_wins_over_the_package() -> None:
    """`torch.jit.trace` stays the function when its package is imported first."""
    program = "import flambeau.jit.trace as t, flambeau.jit as j; assert callable(j.trace), t"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", ["copysign", "xlogy", "float_power"])
def test_a_number_stays_one_where_the_operator_has_a_form_for_it(name: str) -> None:
    """Arithmetic makes tensors of numbers, as Python does there in PyTorch; others do not."""
    x = torch.ones(3)
    recorded = traced(lambda x: getattr(torch, name)(x, 2.0), x)
    assert "float = prim::Constant[value=2.]" in str(recorded.graph)
    recorded = traced(lambda x: torch.floor_divide(x, 2.0), x)
    assert "float = prim::Constant" not in str(recorded.graph)
