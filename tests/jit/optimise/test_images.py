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


def test_weights_may_be_written_to():
    module, x = block(), torch.randn(2, 4, 6, 6)
    traced = torch.jit.trace(module, x)
    with torch.no_grad():
        traced(x)
        module.first.weight.data.mul_(2)  # nothing counts this write, nor the next
        module.norms[0].running_mean.numpy().fill(0.5)
        torch.testing.assert_close(traced(x), module(x), rtol=1e-4, atol=1e-5)
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


@pytest.mark.parametrize("activation", ["relu6", "hardtanh", "relu"])
def test_constants_are_packed_once(activation):
    layers = (nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.Conv2d(16, 16, 3))
    torch.manual_seed(0)
    module = nn.Sequential(*layers[:2], Activation(activation), layers[2]).eval()
    x = torch.randn(2, 8, 9, 9)
    frozen = torch.jit.freeze(torch.jit.trace(module, x))
    graph = optimised(frozen.forward._function)
    found = [n.attributes["function"] for n in graph.walk() if n.kind == "flambeau::Call"]
    assert len(found) == 2
    assert all(chain.is_fixed for chain in found)
    with torch.no_grad():
        torch.testing.assert_close(frozen(x), module(x), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(frozen(x), module(x), rtol=1e-4, atol=1e-5)


def test_constants_that_are_written_to_are_packed_again():
    module, x = nn.Conv2d(8, 16, 3).eval(), torch.randn(2, 8, 30, 30)
    frozen = torch.jit.freeze(torch.jit.trace(module, x))
    with torch.no_grad():
        for weight in (module.weight, module.weight.data):
            torch.testing.assert_close(frozen(x), module(x), rtol=1e-4, atol=1e-5)
            weight.mul_(2)
        torch.testing.assert_close(frozen(x), module(x), rtol=1e-4, atol=1e-5)


class Activation(nn.Module):
    """One of `nn.functional`."""

    def __init__(self, name):
        super().__init__()
        self.name = name

    def forward(self, x):
        return getattr(nn.functional, self.name)(x)


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
