"""A regression whose targets have one dim less than its predictions."""

import torch

torch.manual_seed(0)
inputs, targets = torch.randn(32, 3), torch.randn(32)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(3):
    difference = model(inputs) - targets  # advice: both operands broadcast
    optimizer.zero_grad()
    difference.square().mean(dim=0).sum().backward()
    optimizer.step()
