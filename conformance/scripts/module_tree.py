"""Modules made of modules: containers, buffers, shared weights, and how all of it prints."""

from collections import OrderedDict

import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width, heads=2):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.heads = nn.ModuleList(nn.Linear(width, width // heads) for _ in range(heads))
        self.activations = nn.ModuleDict({"gelu": nn.GELU(), "relu": nn.ReLU(inplace=True)})
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.register_buffer("mask", torch.ones(4, 4).tril().bool(), persistent=False)
        self.register_parameter("unused", None)

    def forward(self, x, activation="gelu"):
        self.calls += 1
        joined = torch.cat([head(self.norm(x)) for head in self.heads], dim=-1)
        return x + self.scale * self.activations[activation](joined)

    def extra_repr(self):
        return "residual=True"


def initialise(module):
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        module.bias.data.fill_(0.01)


def report(function):
    try:
        print(function())
    except Exception as error:
        print(type(error).__name__, error)


layers = [("embed", nn.Linear(6, 8)), ("first", Block(8)), ("second", Block(8, 4))]
model = nn.Sequential(OrderedDict(layers))
model.add_module("head", nn.Sequential(nn.Flatten(), nn.LazyLinear(3)))
print(model)
x = torch.randn(5, 4, 6)
print(model(x).shape, model.head)
print(model.apply(initialise)(x))

for name, parameter in model.named_parameters():
    print(f"{name:24s} {tuple(parameter.shape)!s:10s} {parameter.sum().item():.6f}")
print({name: (buffer.dtype, buffer.shape) for name, buffer in model.named_buffers()})
print(list(model.state_dict()))
print([name for name, _ in model.named_modules()])
print(sum(p.numel() for p in model.parameters() if p.requires_grad), model.first.calls)
print(model.get_submodule("head.1"), model.get_parameter("head.1.bias").shape, model[1:2])

for child in (model.first, model.second):
    child.activations["gelu"] = nn.SiLU()
    del child.activations["relu"]
model.second.heads = model.first.heads
print(model.eval()(x)[0], len(list(model.parameters())), model)

report(lambda: model.third)
report(lambda: model.first.activations["tanh"])
report(lambda: model(torch.randn(2, 7)))
report(lambda: model.get_submodule("head.7"))
report(lambda: setattr(model.first, "scale", torch.ones(1)))
report(lambda: model.load_state_dict({"embed.weight": torch.ones(2, 2), "new": torch.ones(1)}))
report(lambda: nn.Module()(x))
