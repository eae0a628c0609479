"""Gamma correction of an image that was centred before."""

import torch

torch.manual_seed(0)
image = torch.rand(3, 4, 4) - 0.5
corrected = image ** (1 / 2.2)  # nan
