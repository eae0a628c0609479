"""`where` chooses a finite value, and an infinite gradient."""

import torch

x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
safe = torch.where(x > 0, x.log(), torch.zeros(()))  # nan
safe.sum().backward()
