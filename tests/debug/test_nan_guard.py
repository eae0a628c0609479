"""The NaN guard: programs with one fault each, found in the right line, and programs without."""

from __future__ import annotations

import inspect
import math
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau.debug import NonFiniteError, NonFiniteWarning, nan_guard

F = torch.nn.functional
Program = Callable[[], Any]


# ---- faults: the line that is to blame ends with "# here"


def log_of_zero():
    x = torch.tensor([1.0, 0.0])
    return (x.log() + 1).sum()  # here


def division_by_zero():
    x = torch.arange(3.0)
    total = x - x
    mean = x / total  # here
    return mean.sum()


def root_of_negative():
    values = torch.tensor([4.0, -1.0])
    return values.sqrt()  # here


def softmax_of_masked_row():
    scores = torch.zeros(2, 3)
    scores[1] = -math.inf
    return torch.softmax(scores, -1)  # here


def overflow_of_half():
    x = torch.full((3,), 300.0).half()
    y = x + 1
    return y * y  # here


def exponential_too_large():
    scores = torch.tensor([10.0, 1000.0])
    weights = scores.exp()  # here
    return weights / weights.sum()


def variance_of_one():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.ones(1, 4).var(0)  # here


def in_place():
    x = torch.zeros(2)
    x += 1
    x.div_(torch.tensor([0.0, 1.0]))  # here
    return x


def gradient_of_root():
    x = torch.zeros(2, requires_grad=True)
    y = (x * 1).sqrt()  # here
    return y.sum().backward()


def gradient_of_where():
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    ratio = x.pow(0.5)  # here
    torch.where(x > 0, ratio, 0).sum().backward()


def norm_of_nothing():
    x = torch.zeros(3, requires_grad=True)
    unit = x / x.norm()  # here
    return unit.sum()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(2, 2)
        self.second = Block()

    def forward(self, x):
        return self.second(self.first(x))


class Block(torch.nn.Module):
    def forward(self, x):
        return torch.log(x * 0)  # here


def inside_a_module():
    return Net()(torch.ones(1, 2))


FAULTS = [
    log_of_zero, division_by_zero, root_of_negative, softmax_of_masked_row, overflow_of_half,
    exponential_too_large, variance_of_one, in_place, gradient_of_root, gradient_of_where,
    norm_of_nothing, inside_a_module,
]  # fmt: skip


def faulty_line(program: Any) -> int:
    owner = Block.forward if program is inside_a_module else program
    lines, start = inspect.getsourcelines(owner)
    return start + next(k for k, line in enumerate(lines) if line.rstrip().endswith("# here"))


@pytest.mark.parametrize("program", FAULTS)
def test_the_line_to_blame(program: Program) -> None:
    with pytest.raises(NonFiniteError) as found, nan_guard():
        program()
    assert f"{__file__}:{faulty_line(program)}, in" in str(found.value)


def test_what_a_report_says() -> None:
    with pytest.raises(NonFiniteError) as found, nan_guard():
        inside_a_module()
    head, _, module, given = str(found.value).split("\n")
    assert head == "log made 2 inf (of 2, the first at [0, 0]) of finite input"
    assert module == "  in module Net.second"
    assert given == "  input: float32[1, 2] from 0 to 0 (2 0)" or "from -0 to" in given


def test_a_gradient_names_its_operator() -> None:
    with pytest.raises(NonFiniteError, match="the gradient of Sqrt made 2 inf"), nan_guard():
        gradient_of_root()


# ---- no faults


def masking():
    scores = torch.randn(4, 4).masked_fill(torch.ones(4, 4).triu(1).bool(), -math.inf)
    return torch.softmax(scores, -1).sum()


def attention():
    q = torch.randn(1, 2, 5, 4, requires_grad=True)
    F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()


def safe_ratio():
    x = torch.tensor([0.0, 2.0], requires_grad=True)
    safe = torch.where(x > 0, x, 1)
    torch.where(x > 0, 1 / safe, 0).sum().backward()


def stable_losses():
    logits = torch.tensor([[1000.0, -1000.0]], requires_grad=True)
    F.cross_entropy(logits, torch.tensor([1])).backward()
    F.binary_cross_entropy_with_logits(torch.tensor([500.0]), torch.tensor([0.0]))


def integers_and_bools():
    return torch.arange(4) // 2 + torch.ones(4, dtype=torch.bool)


def already_nan():
    x = torch.tensor([math.nan, 1.0])
    return (x * 2).sum()


def infinities_by_intention():
    best = torch.full((3,), -math.inf)
    return torch.maximum(best, torch.ones(3))


def training():
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(),
                              torch.nn.Linear(8, 1))  # fmt: skip
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(16, 3)).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()


def autocast_region():
    with torch.autocast("cpu", torch.bfloat16):
        return torch.randn(4, 4) @ torch.randn(4, 4)


def no_numbers():
    return torch.empty(0, 3).sum(0) + torch.zeros(3).clamp(min=-math.inf)


@pytest.mark.parametrize("program", [
    masking, attention, safe_ratio, stable_losses, integers_and_bools, already_nan,
    infinities_by_intention, training, autocast_region, no_numbers,
])  # fmt: skip
def test_no_false_alarm(program: Program) -> None:
    with nan_guard():
        program()


# ---- options


def test_warnings_come_once_a_line() -> None:
    with pytest.warns(NonFiniteWarning) as found, nan_guard("warn"):
        for _ in range(3):
            torch.zeros(2).log()
    assert len(found) == 1


def test_what_can_be_left_out() -> None:
    with nan_guard(infinities=False):
        torch.zeros(2).log()
    with nan_guard(backward=False):
        gradient_of_root()
    with pytest.raises(ValueError, match="action should be 'raise' or 'warn'"):
        nan_guard("shout")


def test_as_a_decorator_and_nested() -> None:
    @nan_guard()
    def guarded():
        return torch.zeros(1).log()

    for _ in range(2):
        with pytest.raises(NonFiniteError):
            guarded()
    with nan_guard(), pytest.raises(NonFiniteError), nan_guard():
        log_of_zero()


def test_nothing_is_left_behind() -> None:
    from flambeau._core import modes

    with pytest.raises(NonFiniteError), nan_guard():
        log_of_zero()
    assert not modes.stacks.observers
    assert modes.watch.active == modes.watch.nodes == 0
    assert torch.zeros(1).log().isinf()


def test_on_the_command_line() -> None:
    code = "import torch; torch.zeros(1).log()"
    command = [sys.executable, "-m", "flambeau", "run", "--nan-guard", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "NonFiniteError: log made 1 inf" in done.stderr
