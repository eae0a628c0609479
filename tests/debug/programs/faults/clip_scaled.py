"""Gradients that are clipped before they are unscaled."""

import torch
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(0)
model = torch.nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for _ in range(4):
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(torch.randn(12, 6)).float().square().mean()
    scaler.scale(loss).backward()
    clip_grad_norm_(model.parameters(), 1.0)  # advice: clipping of scaled gradients
    scaler.step(optimizer)
    scaler.update()
