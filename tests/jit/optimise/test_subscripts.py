"""Subscripts in scripts: one view each, the same as Python's, with the operators' errors."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.jit.optimise import optimised, settings
from flambeau.jit.optimise.subgraphs import CALL

TEXTS = """
0 | -1 | : | 1: | :-1 | 1:3 | :, 1 | ..., 0 | 1, 2 | 1, :, 2 | 1:3, 0:2 | :, 1:, 0 | k | k, k | k:
:k, 1 | -k:, k | 1:3][0 | 1:][:, k | ::2, 1 | k][1:][0
""".replace("\n", "|").split("|")[1:-1]


def scripted(body, names="x, k: int"):
    source = f"def f({names}):\n    {body}\n"
    return torch.jit.CompilationUnit(source).f


def views_in(function):
    kinds = [node.kind for node in optimised(function).walk()]
    return kinds.count(CALL), kinds.count("aten::select") + kinds.count("aten::slice")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("grad", [False, True])
def test_what_python_gives(text, grad):
    x = torch.randn(4, 5, 6, requires_grad=grad)
    function = scripted(f"return x[{text}]")
    expected = eval(f"x[{text}]", {"x": x, "k": 2})
    for _ in range(3):
        got = function(x, 2)
    assert (got.shape, got.stride(), got.storage_offset()) == (
        expected.shape, expected.stride(), expected.storage_offset())  # fmt: skip
    assert torch.equal(got, expected)
    assert got._base is x
    assert got.requires_grad == grad
    if grad:
        (ours,) = torch.autograd.grad(got.sum(), x)
        (theirs,) = torch.autograd.grad(expected.sum(), x)
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize(("text", "views"), [
    (":, 1", (1, 0)), ("1:3, 0:2", (1, 0)), ("..., 0", (0, 1)), ("1:3][0", (2, 0)),
    ("::2, 1", (1, 1)),
])  # fmt: skip
def test_how_many_views_are_made(text, views):
    assert views_in(scripted(f"return x[{text}]")) == views


def test_a_view_that_others_use_stays():
    function = scripted("y = x[1:]; return y[:, k] + y[:, 0], y")
    x = torch.randn(3, 4)
    total, rows = function(x, 2)
    assert torch.equal(total, x[1:, 2] + x[1:, 0])
    assert rows._base is x


def test_what_is_written_between_two_views_counts():
    function = scripted("y = x[k]; x.transpose_(0, 1); return y[0]")
    x = torch.arange(6).view(2, 3)
    assert function(x, 1).item() == 3


@pytest.mark.parametrize(("text", "message"), [
    ("9", r"select\(\): index 9 out of range for tensor of size \[4, 5\] at dimension 0"),
    (":, k", r"select\(\): index 7 out of range for tensor of size \[4, 5\] at dimension 1"),
    ("0, 0, 0", r"select\(\) cannot be applied to a 0-dim tensor."),
])  # fmt: skip
def test_errors_are_those_of_the_operators(text, message):
    function = scripted(f"return x[{text}]")
    with pytest.raises(RuntimeError, match=message):
        function(torch.randn(4, 5), 7)


def test_without_the_optimisation_it_is_the_same():
    with settings.using(subscripts=False):
        function = scripted("return x[:, k]")
        x = torch.randn(3, 4)
        assert torch.equal(function(x, 1), x[:, 1])
        assert views_in(function) == (0, 2)
