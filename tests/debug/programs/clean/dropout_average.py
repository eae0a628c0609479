"""The spread of predictions with dropout left on, on purpose."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 1))
batch = torch.randn(10, 4)
with torch.no_grad():
    drawn = torch.stack([model(batch) for _ in range(20)])
spread = drawn.std(dim=0)

model.eval()
for module in model.modules():
    if isinstance(module, nn.Dropout):
        module.train()
with torch.no_grad():
    for part in torch.randn(30, 4).split(5):
        model(part)
