"""A loss in float16, outside of autocast; a square that float16 can't hold."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
weight = torch.randn(8, 1, requires_grad=True)
inputs, targets = torch.randn(16, 8).half(), torch.randn(16, 1).half()
loss = F.mse_loss(inputs @ weight.half(), targets)  # advice: float16
loss.backward()

distances = torch.full((4,), 300.0).half()
energy = distances * distances  # advice: float16
