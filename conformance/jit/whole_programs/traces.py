"""Traces, scripts in traces, traces in scripts, scripts that are made when they are first traced."""

import torch
from torch import Tensor, nn


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, padding=1)
        self.norm = nn.BatchNorm2d(2)
        self.rest = nn.Sequential(nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(1))
        self.head = nn.Linear(2, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rest(self.norm(self.conv(x))))


def make_traced_module():
    return torch.jit.trace(Convolutions().eval(), (torch.ones(2, 1, 4, 4),))


def traced_function(x, y):
    z = x * y + x.size(0)
    return z.sum(dim=1), {"z": z}["z"].t()


def make_traced_function():
    return torch.jit.trace(traced_function, (torch.ones(2, 3), torch.ones(3)))


@torch.jit.script
def repeated(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = x + x.sin() * i
    return x


def with_script(x):
    return repeated(x * 2, 3).exp()


def make_script_in_trace():
    return torch.jit.trace(with_script, (torch.ones(2),))


class ScriptInside(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = torch.jit.script(Gate())
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        return self.gate(self.linear(x)) * 2


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.5, -2.0]))

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            return x * self.weight
        return x - self.weight


def make_script_module_in_trace():
    return torch.jit.trace(ScriptInside(), (torch.ones(1, 2),))


class TraceInside(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2))

    def forward(self, x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = self.linear(x).tanh()
        return x


@torch.jit.script_if_tracing
def rows_until(x: Tensor, limit: float) -> Tensor:
    total = torch.zeros(x.size(1))
    for i in range(x.size(0)):
        if bool(total.sum() > limit):
            break
        total = total + x[i]
    return total


def counting(x):
    return rows_until(x, 4.0) * 2


def make_script_if_tracing():
    return torch.jit.trace(counting, (torch.ones(5, 2),))


def lists_of_results(x, pair):
    a, b = pair
    return [x + a, x - b], (a * b, (x,))


def make_nested_results():
    example = (torch.ones(2), (torch.ones(2), torch.zeros(2)))
    return torch.jit.trace(lists_of_results, example, strict=False)


PROGRAMS = {
    "traced_module": (make_traced_module, [(torch.randn(1, 1, 6, 6),), (torch.randn(3, 1, 4, 5),)]),
    "traced_function": (make_traced_function, [(torch.randn(2, 3), torch.randn(3)), (torch.randn(4, 2), torch.ones(1))]),
    "script_in_trace": (make_script_in_trace, [(torch.randn(2),)]),
    "script_module_in_trace": (make_script_module_in_trace, [(torch.randn(3, 2),), (-torch.ones(1, 2) * 9,)]),
    "trace_in_script": (TraceInside, [(torch.randn(3, 2), 2), (torch.randn(3, 2), 0)]),
    "script_if_tracing": (make_script_if_tracing, [(torch.ones(3, 2),), (torch.ones(9, 3),)]),
    "nested_results": (make_nested_results, [(torch.randn(2), (torch.randn(2), torch.randn(2)))]),
}
