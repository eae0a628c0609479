"""Modules: parameters, submodules, train and eval modes, frozen layers; a line fitted with SGD.

Usage: `flambeau run examples/modules.py`
"""

import torch
from torch import nn


class Line(nn.Module):
    """a x + b with two numbers to learn."""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.rand(1))
        self.b = nn.Parameter(torch.rand(1))

    def forward(self, x):
        return self.a * x + self.b


def fit(net):
    """Samples of 5 x + 3."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(500):
        x = torch.rand(100)
        loss = nn.functional.mse_loss(net(x), 5 * x + 3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"should be close to 5 and 3: {net.a.item():.3f} {net.b.item():.3f}")


def main():
    torch.manual_seed(0)
    fit(Line())
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 10))
    print(model)
    print("parameters:", {name: tuple(p.shape) for name, p in model.named_parameters()})
    x = torch.rand(2, 64)
    print("training at first:", model.training, torch.equal(model(x), model(x)))
    model.eval()
    print("dropout off:", torch.equal(model(x), model(x)))
    model[0].requires_grad_(False)  # frozen: only the last layer learns
    model(x).sum().backward()
    print("gradients:", model[0].weight.grad, tuple(model[3].weight.grad.shape))


if __name__ == "__main__":
    main()
