"""The mean of what a mask leaves: of nothing."""

import torch

losses = torch.rand(8)
mask = losses > 2
mean = losses[mask].mean()  # nan
