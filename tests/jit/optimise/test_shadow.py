"""Shadow mode says what differs, and nothing where nothing does; faults fall back."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._runtime import choice
from flambeau.debug import check_optimised
from flambeau.jit.errors import OptimisedDifference
from flambeau.jit.optimise import faults
from flambeau.jit.optimise import settings as switches
from flambeau.jit.optimise.fusion import group as groups
from flambeau.jit.optimise.fusion.forms import Form
from flambeau.jit.optimise.fusion.group import Group

# ruff: noqa: ANN001, ANN201

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.skipif(not choice.available(), reason="no llvmlite, no forms to spoil"),
]
TEXT = """
def f(x: Tensor, y: Tensor):
    print("called")
    return torch.exp(x * 2) + y, x
"""


@pytest.fixture(autouse=True)
def _kernels_for_small_tensors(monkeypatch):
    monkeypatch.setattr(groups, "FEW", 0)


def spoiled(change):
    """`Group.fused` with its results changed."""
    right = Group.fused

    def fused(self, form, values):
        return change(right(self, form, values), values)

    return fused


def times_two(result, values):
    with torch.no_grad():
        result.mul_(2)
    return result


SPOILED = {
    "elements differ": lambda result, values: result * 1.01,
    "dtype": lambda result, values: result.double(),
    "shape": lambda result, values: result[:-1],
    "strides": lambda result, values: result.t().contiguous().t(),
    "requires_grad": lambda result, values: result.detach(),
    "version": times_two,
    "aliasing": lambda result, values: _over(values[0], result),
    "gradient": lambda result, values: result.detach() + values[0] * 0,
    "random state": lambda result, values: result + 0 * torch.rand(()),
    "error": lambda result, values: 1 / 0,
}


def _over(argument, result):
    """The result, in the memory of an argument: as views are, which the program does not make."""
    with torch.no_grad():
        argument.detach().copy_(result)
    return argument.view_as(argument)


@pytest.mark.parametrize("kind", SPOILED)
def test_differences_are_told(kind, monkeypatch):
    """Each kind of difference is found, in the second call: there the kernels come in."""
    f = torch.jit.CompilationUnit(TEXT).f
    x, y = torch.randn(8, 8, requires_grad=True), torch.randn(8, 8)
    monkeypatch.setattr(Group, "fused", spoiled(SPOILED[kind]))
    with switches.using(raise_faults=True), check_optimised():
        told = pytest.raises(OptimisedDifference, lambda: [f(x * 1, y) for _ in range(3)])
    if kind != "aliasing":  # what lies over an argument has changed it, too
        assert kind in str(told.value)


def test_agreement_is_counted():
    """Results are those of the call itself; arguments, random state and output are used once."""
    f = torch.jit.CompilationUnit(TEXT).f
    x, y = torch.randn(8, 8, requires_grad=True), torch.randn(8, 8)
    with check_optimised() as counted:
        for _ in range(3):
            results = f(x, y)
        assert counted == {"compared": 3}
    torch.testing.assert_close(results[0], torch.exp(x * 2) + y)
    assert results[1] is x


class Counts(torch.nn.Module):
    """A module that changes itself."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        """Counts, and draws."""
        self.seen.add_(1)
        return torch.nn.functional.dropout(x * self.weight, 0.5, True) + self.seen


def test_modules_change_once():
    """What a call writes to buffers and draws at random is done once, by the call itself."""
    module = torch.jit.script(Counts())
    torch.manual_seed(3)
    expected = [module(torch.ones(4)) for _ in range(3)]
    module.seen.zero_()
    torch.manual_seed(3)
    with check_optimised() as counted:
        found = [module(torch.ones(4)) for _ in range(3)]
        assert counted == {"compared": 3}
    assert module.seen == 3
    for mine, theirs in zip(found, expected, strict=True):
        assert torch.equal(mine, theirs)


def test_writes_to_views_and_bases():
    """Arguments that share memory are copied together."""
    text = "def f(x: Tensor, y: Tensor):\n    x.mul_(2)\n    return y + 1, y.t()\n"
    f = torch.jit.CompilationUnit(text).f
    base = torch.randn(4, 4)
    with check_optimised() as counted:
        result, turned = f(base[1:], base)
        assert counted == {"compared": 1}
    torch.testing.assert_close(result, base + 1)
    assert turned._base is base


def test_errors_of_programs_are_theirs():
    """A program that raises does so under comparison, too."""
    f = torch.jit.CompilationUnit("def f(x: Tensor, y: Tensor):\n    return x @ y + 1\n").f
    with check_optimised(), pytest.raises(RuntimeError, match="cannot be multiplied"):
        f(torch.ones(2, 3), torch.ones(2, 3))


# ---- faults


def broken(*args, **kwargs):
    raise KeyError("broken on purpose")


BROKEN = {
    "tracing": (groups, "Maker"),
    "launching": (Form, "run"),
    "backward": (Form, "run_backward"),
}


@pytest.mark.parametrize("stage", BROKEN)
def test_faults_fall_back(stage, monkeypatch):
    """The operators run in the place of what is broken, and it is counted."""
    f = torch.jit.CompilationUnit("def f(x: Tensor):\n    return torch.exp(x * 2) + x\n").f
    x = torch.randn(8, 8, requires_grad=True)
    monkeypatch.setattr(*BROKEN[stage], broken)
    before = faults.counted["fusion"]
    with switches.using(raise_faults=False):
        for _ in range(3):
            result = f(x)
            (slope,) = torch.autograd.grad(result.sum(), x)
            torch.testing.assert_close(result, torch.exp(x * 2) + x)
            torch.testing.assert_close(slope, torch.exp(x * 2) * 2 + 1)
    assert faults.counted["fusion"] > before
    assert isinstance(faults.last["fusion"], KeyError)


def test_faults_are_raised_in_tests(monkeypatch):
    """So that nothing hides."""
    f = torch.jit.CompilationUnit("def f(x: Tensor):\n    return torch.exp(x * 2) + x\n").f
    monkeypatch.setattr(groups, "Maker", broken)
    with switches.using(raise_faults=True), pytest.raises(RuntimeError, match="broken on purpose"):
        for _ in range(3):
            f(torch.randn(8, 8))


def test_faults_of_the_passes_fall_back(monkeypatch):
    """A pass that fails leaves the program as it is."""
    from flambeau.jit.optimise.fusion import groups as passes

    monkeypatch.setattr(passes, "rewrite", broken)
    f = torch.jit.CompilationUnit("def f(x: Tensor):\n    return torch.exp(x * 2) + x\n").f
    with switches.using(raise_faults=False):
        torch.testing.assert_close(f(torch.ones(2)), torch.exp(torch.ones(2) * 2) + 1)
    assert isinstance(faults.last["rewriting"], KeyError)


def test_faults_are_told_once(monkeypatch):
    """Under `flambeau run --advise`."""
    monkeypatch.setattr(switches, "advised", True)
    faults.counted.pop("a part", None)
    with switches.using(raise_faults=False):
        with pytest.warns(faults.OptimiserWarning, match="a part: KeyError"):
            faults.note("a part", KeyError("x"))
        faults.note("a part", KeyError("x"))  # warnings are errors here
