"""A classifier that ends in softmax, and a loss that takes the logarithm."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3), nn.Softmax(dim=1))
optimizer = torch.optim.Adam(model.parameters())
inputs, targets = torch.randn(20, 4), torch.arange(20) % 3
for _ in range(3):
    probabilities = model(inputs)
    logs = torch.log(probabilities + 1e-9)  # advice: a formula by hand
    loss = -logs.gather(1, targets[:, None]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
