"""What modules can hold and do."""

from typing import Dict, Final, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Averaged(nn.Module):
    """Buffers, constants, attributes that calls change; train and eval."""

    __constants__ = ["momentum"]
    size: Final[int]

    def __init__(self, size: int):
        super().__init__()
        self.size = size
        self.momentum = 0.25
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("scratch", torch.ones(1), persistent=False)
        self.calls = 0
        self.names = torch.jit.Attribute([], List[str])

    def forward(self, x: Tensor, name: str = "none") -> Tuple[Tensor, int, List[str]]:
        if self.training:
            self.mean.mul_(1 - self.momentum).add_(x.detach().mean(0), alpha=self.momentum)
            self.calls += 1
        self.scratch = self.scratch * 2
        self.names.append(name)
        return (x - self.mean).reshape(-1, self.size) * self.scratch, self.calls, self.names


def make_averaging():
    return Averaged(2)


def make_fixed():
    return Averaged(3).eval()


class Helper(nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale
        self.inner = nn.Linear(2, 2, bias=False)

    def twice(self, x: Tensor) -> Tensor:
        return self.inner(self.inner(x))

    def forward(self, x: Tensor) -> Tensor:
        return self.twice(x) * self.scale


class Methods(nn.Module):
    """Methods of its own and of others; exported, ignored, unused."""

    def __init__(self):
        super().__init__()
        self.first = Helper(2.0)
        self.second = Helper(3.0)

    def combine(self, a: Tensor, b: Tensor, weight: float = 0.5) -> Tensor:
        return weight * a + (1.0 - weight) * b

    @torch.jit.export
    def extra(self, x: Tensor, n: int) -> List[Tensor]:
        return [self.first.twice(x) for _ in range(n)]

    @torch.jit.unused
    def debug(self, x: Tensor) -> Tensor:
        import os  # what cannot be scripted

        return x * len(os.environ)

    @property
    def total_scale(self) -> float:
        return self.first.scale + self.second.scale

    def forward(self, x: Tensor, debug: bool = False) -> Tensor:
        if debug:
            x = self.debug(x)
        a = self.first.twice(x)
        b = self.second(x)
        outputs = self.extra(x, 2)
        return self.combine(a, b) + self.combine(b, a, weight=0.1) + outputs[1] * self.total_scale


class Holders(nn.Module):
    """Lists and dictionaries of modules and parameters."""

    def __init__(self):
        super().__init__()
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(2) * i) for i in range(3)])
        self.table = nn.ParameterDict({"a": nn.Parameter(torch.ones(2)), "b": nn.Parameter(torch.zeros(2))})
        self.blocks = nn.ModuleDict({"one": nn.Linear(2, 2), "two": nn.Sequential(nn.Linear(2, 2), nn.ReLU())})
        self.empty = nn.ModuleList([])

    def forward(self, x: Tensor) -> Tuple[Tensor, List[str]]:
        for scale in self.scales:
            x = x + scale
        names: List[str] = []
        for name, block in self.blocks.items():
            names.append(name)
            x = block(x)
        for block in self.empty:
            x = block(x)
        if "one" in self.blocks:
            x = self.blocks["one"](x)
        return x * self.scales[1], names


def twice_input(module, inputs: Tuple[Tensor]) -> Tuple[Tensor]:
    return (inputs[0] * 2,)


def added(module, inputs: Tuple[Tensor], output: Tensor) -> Tensor:
    return output + inputs[0].sum()


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x)


class WithHooks(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Hooked()
        self.inner.register_forward_pre_hook(twice_input)
        self.inner.register_forward_hook(added)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) + 1


class Switch(nn.Module):
    """Attributes that decide at compile time which code there is."""

    def __init__(self, norm: Optional[nn.Module], depth: int):
        super().__init__()
        self.norm = norm
        self.depth = depth
        if depth > 1:
            self.deeper = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        if self.norm is not None:
            x = self.norm(x)
        if hasattr(self, "deeper"):
            x = self.deeper(x)
        if torch.jit.is_scripting():
            return x * self.depth
        else:
            return self.depth * x


def make_plain():
    return Switch(None, 1)


def make_deeper():
    return Switch(nn.LayerNorm(2), 2)


class Options(nn.Module):
    """Attributes of many types, inferred and annotated."""

    table: Dict[str, List[int]]
    pair: Tuple[int, str]

    def __init__(self):
        super().__init__()
        self.table = {"a": [1, 2]}
        self.pair = (3, "x")
        self.rate = 0.5
        self.active = True
        self.kind = "relu"
        self.shape = [2, -1]
        self.activation = torch.tanh
        self.function = F.relu
        self.dtype = torch.float64
        self.device = torch.device("cpu")

    def forward(self, x: Tensor) -> Tuple[Tensor, Dict[str, List[int]], Tuple[int, str]]:
        y = self.activation(x) if self.active else x
        if self.kind == "relu":
            y = self.function(y)
        self.table[self.kind] = [len(self.table)]
        self.pair = (self.pair[0] + 1, self.pair[1] + "y")
        self.active = not self.active
        y = y.reshape(self.shape).to(self.dtype) + torch.ones(1, device=self.device)
        return y * self.rate, self.table, self.pair


PROGRAMS = {
    "averaging": (make_averaging, [(torch.arange(6.0).reshape(3, 2),), (torch.ones(1, 2), "one")]),
    "fixed": (make_fixed, [(torch.arange(6.0).reshape(2, 3), "a")]),
    "methods": (Methods, [(torch.randn(3, 2),), (torch.randn(2), False), (torch.ones(2), True)]),
    "holders": (Holders, [(torch.randn(3, 2),)]),
    "with_hooks": (WithHooks, [(torch.randn(3, 2),)]),
    "plain": (make_plain, [(torch.randn(3, 2),)]),
    "deeper": (make_deeper, [(torch.randn(3, 2),)]),
    "options": (Options, [(torch.randn(3, 2),)]),
}
