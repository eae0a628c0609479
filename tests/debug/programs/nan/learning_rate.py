"""A step so large that the next prediction overflows."""

import torch

torch.manual_seed(0)
weight = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1e15)
inputs = torch.randn(8, 3)
for _ in range(8):
    optimizer.zero_grad()
    errors = inputs @ weight - 1
    loss = errors.square().mean()  # nan
    loss.backward()
    optimizer.step()
