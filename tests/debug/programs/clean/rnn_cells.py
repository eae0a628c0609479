"""A recurrent cell over time, with truncated backpropagation."""

import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.GRUCell(4, 12), nn.Linear(12, 1)
parameters = [*cell.parameters(), *head.parameters()]
optimizer = torch.optim.RMSprop(parameters, lr=1e-3)
series = torch.sin(torch.arange(400.0)).view(10, 10, 4)
hidden = torch.zeros(10, 12)
for _ in range(4):
    hidden = hidden.detach()
    loss = torch.zeros(())
    for step in series.unbind(1):
        hidden = cell(step, hidden)
        loss = loss + (head(hidden).squeeze(1) - step[:, 0]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
