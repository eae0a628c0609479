"""Functions with gradients of their own, checkpointing, autocast, and what autograd refuses."""

import math

import torch
from torch import nn
from torch.autograd import Function, gradcheck
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Legendre3(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 0.5 * (5 * x**3 - 3 * x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 1.5 * (5 * x**2 - 1)


class Rounded(Function):
    """Rounding whose gradient is the identity."""

    @staticmethod
    def forward(x, steps):
        return torch.round(x * steps) / steps

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.steps = inputs

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Affine(Function):
    @staticmethod
    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight)
        result = x.mm(weight.t())
        return result if bias is None else result + bias

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        of_x = grad.mm(weight) if ctx.needs_input_grad[0] else None
        of_weight = grad.t().mm(x) if ctx.needs_input_grad[1] else None
        return of_x, of_weight, grad.sum(0) if ctx.needs_input_grad[2] else None


wide = torch.randn(4, 5, dtype=torch.double, requires_grad=True)
weight = torch.randn(3, 5, dtype=torch.double, requires_grad=True)
print(gradcheck(Affine.apply, (wide, weight, torch.ones(3, dtype=torch.double))))

x = torch.linspace(-math.pi, math.pi, 200)
a, b, c, d = (torch.full((), value, requires_grad=True) for value in (0.0, -1.0, 0.0, 0.3))
for step in range(200):
    loss = (a + b * Legendre3.apply(c + d * x) - torch.sin(x)).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        for parameter in (a, b, c, d):
            parameter -= 5e-5 * parameter.grad
            parameter.grad = None
    if step % 50 == 49:
        print(step, f"{loss.item():.4f}")
print(f"{a.item():.4f} + {b.item():.4f} * P3({c.item():.4f} + {d.item():.4f} x)")
v = torch.tensor([-1.2, 0.3, 2.6], requires_grad=True)
print(Rounded.apply(v, 2.0), torch.autograd.grad(Rounded.apply(v, 2.0).sum(), v))

net = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.2), nn.Tanh(), nn.Linear(8, 1))
inputs = torch.randn(6, 3, requires_grad=True)
for again in (False, True):
    torch.manual_seed(1)
    out = checkpoint(net, inputs, use_reentrant=False) if again else net(inputs)
    grads = torch.autograd.grad(out.pow(2).sum(), [inputs, net[0].weight], create_graph=True)
    print([f"{grad.norm().item():.6f}" for grad in grads])
fast = dict(net.eval().named_parameters())
for _ in range(2):
    loss = functional_call(net, fast, inputs).pow(2).mean()
    grads = torch.autograd.grad(loss, fast, create_graph=True)
    fast = {name: p - 0.1 * grads[name] for name, p in fast.items()}
functional_call(net, fast, inputs).pow(2).mean().backward()
print(net[0].bias.grad)
print(torch.autograd.functional.hessian(lambda x: x.pow(3).sum(), torch.tensor([1.0, 2.0])))

with torch.autocast("cpu", dtype=torch.bfloat16):
    half = net(inputs)
    print(half.dtype, half.softmax(0).dtype, nn.functional.mse_loss(half, half).dtype)
print(torch.finfo(torch.bfloat16), torch.finfo(torch.float16).resolution)


def twice():
    total = (v * v).sum()
    total.backward()
    total.backward()


def changed():
    y = (v * 2).exp()
    total = y.sum()
    y.mul_(2)
    total.backward()
    y.sum().backward()


for wrong in (
    twice,
    changed,
    lambda: torch.ones(2).sum().backward(),
    lambda: (v * 2).backward(),
    lambda: v.add_(1),
    lambda: v.numpy(),
    lambda: torch.tensor([1, 2], requires_grad=True),
    lambda: torch.autograd.grad(v.sum(), wide),
    lambda: torch.zeros(2, dtype=torch.float32) @ torch.ones(3),
    lambda: torch.set_default_dtype(torch.int32),
):
    try:
        wrong()
    except (RuntimeError, TypeError) as error:
        print(type(error).__name__, error)
