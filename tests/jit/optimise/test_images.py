"""Convolutions with what follows them: results, fresh weights, gradients, training."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.jit.optimise import optimised
from flambeau.jit.optimise.images import ConvolutionChain, fold_norm

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Block(nn.Module):
    """Two convolutions with a residual."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.second = nn.Conv2d(4, 4, 3, padding=1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(4), nn.BatchNorm2d(4)])
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.norms[0](self.first(x)))
        return self.relu(self.norms[1](self.second(y)) + x)


def block():
    torch.manual_seed(0)
    module = Block()
    for norm in module.norms:
        norm.running_mean.uniform_(-1, 1)
        norm.running_var.uniform_(0.5, 2)
        nn.init.uniform_(norm.weight)
    return module.eval()


def chains(traced):
    graph = optimised(traced.forward._function)
    return [n for n in graph.walk() if isinstance(n.attributes.get("function"), ConvolutionChain)]


def test_a_traced_block_is_two_calls_and_agrees():
    module, x = block(), torch.randn(2, 4, 6, 6)
    traced = torch.jit.trace(module, x)
    assert len(chains(traced)) == 2
    with torch.no_grad():
        torch.testing.assert_close(traced(x), module(x), rtol=1e-4, atol=1e-5)


def test_weights_that_are_written_to_are_folded_again():
    module, x = block(), torch.randn(2, 4, 6, 6)
    traced = torch.jit.trace(module, x)
    with torch.no_grad():
        traced(x)
        module.norms[0].running_var.mul_(3)
        module.second.weight.add_(0.5)
        torch.testing.assert_close(traced(x), module(x), rtol=1e-4, atol=1e-5)
        module.norms[1].weight = nn.Parameter(torch.rand(4))
        traced = torch.jit.trace(module, x)
        torch.testing.assert_close(traced(x), module(x), rtol=1e-4, atol=1e-5)


def test_gradients_go_through_the_operators():
    module, x = block(), torch.randn(2, 4, 6, 6)
    traced = torch.jit.trace(module, x)
    slope = torch.randn(2, 4, 6, 6)
    parameters = list(module.parameters())
    ours = torch.autograd.grad(traced(x), parameters, slope)
    theirs = torch.autograd.grad(module(x), parameters, slope)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other)


def test_the_input_is_not_written_to():
    module, x = block(), torch.randn(2, 4, 6, 6)
    traced, kept = torch.jit.trace(module, x), x.clone()
    with torch.no_grad():
        traced(x)
    assert torch.equal(x, kept)


def test_folded_weights():
    generator = torch.manual_seed(1)
    del generator
    weight, bias = torch.randn(4, 3, 2, 2), torch.randn(4)
    norm = nn.BatchNorm2d(4).eval()
    norm.running_mean.uniform_(-1, 1)
    norm.running_var.uniform_(0.5, 2)
    x = torch.randn(1, 3, 5, 5)
    made = fold_norm(weight.numpy(), bias.numpy(), None, None, norm.running_mean.numpy(),
                     norm.running_var.numpy(), eps=norm.eps)  # fmt: skip
    folded = torch.nn.functional.conv2d(x, *map(torch.from_numpy, made))
    with torch.no_grad():
        expected = norm(torch.nn.functional.conv2d(x, weight, bias))
    torch.testing.assert_close(folded, expected, rtol=1e-4, atol=1e-5)
