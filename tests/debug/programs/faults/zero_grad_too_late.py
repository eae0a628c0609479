"""Gradients that are thrown away before the step."""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(3):
    model(torch.randn(8, 3)).square().mean().backward()
    optimizer.zero_grad()
    optimizer.step()  # advice: a step without gradients
