"""`optimizer.step()` where `scaler.step(optimizer)` was meant."""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(6, 2)
optimizer = torch.optim.Adam(model.parameters())
scaler = torch.amp.GradScaler("cpu")
for _ in range(2):
    optimizer.zero_grad()
    scaler.scale(model(torch.randn(12, 6)).square().mean()).backward()
    optimizer.step()  # advice: a step with scaled gradients
