"""A model that is evaluated without `eval()`."""

import torch
from torch import nn

torch.manual_seed(0)
body = [nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2)]
model = nn.Sequential(*body, nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, targets = torch.randn(64, 4), torch.arange(64) % 2
for _ in range(3):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), targets).backward()
    optimizer.step()
with torch.no_grad():
    predicted = model(torch.randn(10, 4)).argmax(1)  # advice: train mode under no_grad
