"""A model in float16 that is trained as it is."""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 2).half()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(5, 4).half()).float().square().mean().backward()
    optimizer.step()  # advice: float16 parameters
