"""Warm-up and decay, one cycle, and a plateau; what the rates were."""

import torch
from torch.optim import lr_scheduler

torch.manual_seed(0)
weight = torch.randn(3, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
warm = lr_scheduler.LinearLR(optimizer, 0.1, total_iters=5)
decay = lr_scheduler.ExponentialLR(optimizer, 0.9)
scheduler = lr_scheduler.SequentialLR(optimizer, [warm, decay], milestones=[5])
plateau = lr_scheduler.ReduceLROnPlateau(optimizer, patience=3)
rates = []
for _ in range(20):
    optimizer.zero_grad()
    loss = (weight - 1).square().sum()
    loss.backward()
    optimizer.step()
    scheduler.step()
    plateau.step(loss.item())
    rates.append(scheduler.get_last_lr()[0])
assert rates[4] > rates[0] and rates[-1] < rates[5]
