"""Gradients of four small batches for one step."""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step, batch in enumerate(torch.randn(16, 8, 5)):
    loss = (model(batch).squeeze(-1) - batch.sum(1)).square().mean() / 4
    loss.backward()
    if (step + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
