"""A running loss that keeps the graphs of all steps."""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
running = 0
for _ in range(10):
    loss = model(torch.randn(8, 3)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running += loss  # advice: a total that keeps graphs
