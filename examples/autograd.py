"""Automatic differentiation: gradients, accumulation, second derivatives, a custom function.

Usage: `flambeau run examples/autograd.py`
"""

import torch


class Cube(torch.autograd.Function):
    """x³ with a derivative written by hand."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


def chain_rule():
    """g(u(x)) = -x², whose derivative at 1 is -2."""
    x = torch.tensor(1.0, requires_grad=True)
    g = -x * x
    print("dg/dx:", torch.autograd.grad(g, x)[0])


def accumulate():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(2):
        (w * torch.tensor([3.0, 4.0])).sum().backward()
    print("two passes add up:", w.grad)
    with torch.no_grad():
        w -= 0.1 * w.grad
    print("one step down:", w)


def higher():
    x = torch.tensor(2.0, requires_grad=True)
    (first,) = torch.autograd.grad(torch.sin(x) * x, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    print(f"derivatives of x sin x at 2: {first.item():.4f}, {second.item():.4f}")


def custom():
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    y = Cube.apply(x)
    y.sum().backward()
    print("cube:", y, x.grad)
    print("gradcheck:", torch.autograd.gradcheck(Cube.apply, x))


if __name__ == "__main__":
    chain_rule()
    accumulate()
    higher()
    custom()
