"""Gradients that add up from step to step."""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(6):
    loss = model(torch.randn(8, 3)).square().mean()
    loss.backward()
    optimizer.step()  # advice: gradients of earlier steps
