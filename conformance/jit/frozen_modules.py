"""Modules to be frozen, in either library: see test_freezing, which also freezes a ResNet."""
# ruff: noqa: D102, D107, UP045 - torch reads the annotations

from typing import Optional

import torch
from torch import Tensor, nn


class Net(nn.Module):
    """Layers, a buffer and a number, and methods beside `forward`."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(4, 5)
        self.count = 3
        self.register_buffer("seen", torch.zeros(1))

    def features(self, x):
        return self.pool(self.stem(x)).flatten(1)

    def forward(self, x):
        return self.fc(self.drop(self.features(x)))

    @torch.jit.export
    def also(self, x):
        return self.features(x) * self.count

    @torch.jit.export
    def bump(self):
        self.seen += 1
        return self.seen


class Counter(nn.Module):
    """A tensor is written to in place."""

    def __init__(self):
        super().__init__()
        self.t = torch.tensor(10.0)
        self.version = 1
        self.sub = nn.Linear(2, 2)
        self.names = ["a", "b"]
        self.table: dict[str, Tensor] = {"w": torch.ones(2)}

    def forward(self, x):
        self.t += 1
        return self.sub(x) + self.t + self.table["w"] * len(self.names)


class Assigned(nn.Module):
    """An attribute is assigned to."""

    def __init__(self):
        super().__init__()
        self.n = 0
        self.scale = 2.0
        self.inner = nn.BatchNorm1d(2)

    def forward(self, x):
        self.n = self.n + 1
        return self.inner(x) * self.scale + self.n


class Looped(nn.Module):
    """Containers of layers, and a mode."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
        self.more = nn.ModuleDict({"r": nn.ReLU(), "g": nn.GELU()})
        self.mode: Optional[int] = None

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        for _, layer in self.more.items():
            x = layer(x)
        if self.mode is not None:
            x = x + 1
        if self.training:
            x = x * 0
        return x


class ConvAdd(nn.Module):
    """What follows the convolution is added to and scales its result."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.register_buffer("s", torch.arange(4.0).reshape(1, 4, 1, 1) + 1)

    def forward(self, x):
        return (self.conv(x) + self.s) * 2.0


class ConvMul(nn.Module):
    """The same, in another order, without a bias."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, bias=False)
        self.register_buffer("s", torch.arange(4.0).reshape(1, 4, 1, 1) + 1)

    def forward(self, x):
        return self.conv(x) * self.s / 3.0 - self.s


class TransBN(nn.Module):
    """A transposed convolution, whose text is left alone."""

    def __init__(self):
        super().__init__()
        self.conv = nn.ConvTranspose2d(3, 4, 3)
        self.bn = nn.BatchNorm2d(4)

    def forward(self, x):
        return self.bn(self.conv(x))


class Heads(nn.Module):
    """Three layers over one input."""

    def __init__(self):
        super().__init__()
        self.q = nn.Linear(4, 4)
        self.k = nn.Linear(4, 4)
        self.v = nn.Linear(4, 6)

    def forward(self, x):
        return self.q(x), self.k(x), self.v(x)


class LinearAdd(nn.Module):
    """A weight that is used twice."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.d = nn.Dropout(0.1)

    def forward(self, x):
        return torch.relu(self.d(self.lin(x)) + 1.0) @ self.lin.weight.t()
