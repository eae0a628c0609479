"""Broadcasting: where it saves memory and code, and where it goes wrong silently.

Usage: `flambeau run examples/broadcasting.py`
"""

import torch
from torch import nn


class Merge(nn.Module):
    """activation(A a + B b) for any a and b that broadcast: no tiling, no concatenation."""

    def __init__(self, in_features1, in_features2, out_features, activation=None):
        super().__init__()
        self.linear1 = nn.Linear(in_features1, out_features)
        self.linear2 = nn.Linear(in_features2, out_features)
        self.activation = activation

    def forward(self, a, b):
        c = self.linear1(a) + self.linear2(b)
        return c if self.activation is None else self.activation(c)


def good():
    a, b = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0], [2.0]])
    print("same as tiling:", torch.equal(a + b, a + b.repeat([1, 2])))
    torch.manual_seed(0)
    merged = Merge(5, 6, 10, nn.functional.relu)(torch.rand(5, 3, 5), torch.rand(5, 1, 6))
    print("merged:", merged.shape, merged[0, 0, :3].detach())


def ugly():
    a, b = torch.tensor([[1.0], [2.0]]), torch.tensor([1.0, 2.0])
    print("6 was wanted:", torch.sum(a + b))
    print("with the dim given it shows:", torch.sum(a + b, 0))
    one = torch.zeros(1, 3, 1)
    print("squeeze, squeeze(2):", torch.squeeze(one).shape, torch.squeeze(one, 2).shape)
    try:
        torch.zeros(3, 2) + torch.zeros(3, 4)
    except RuntimeError as error:
        print("RuntimeError:", error)


if __name__ == "__main__":
    good()
    ugly()
