"""Autocast, a scaler, and clipping between `unscale_` and `step`."""

import torch
from torch import nn

torch.manual_seed(0)
body = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten()]
model = nn.Sequential(*body, nn.Linear(512, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(4):
    images, labels = torch.rand(6, 3, 8, 8), torch.randint(0, 4, (6,))
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", torch.bfloat16):
        loss = nn.functional.cross_entropy(model(images), labels)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    scaler.step(optimizer)
    scaler.update()
