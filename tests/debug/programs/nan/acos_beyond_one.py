"""The angle of two unit vectors whose product is a little above 1."""

import torch

cosine = torch.tensor([0.5, 1.0000001], dtype=torch.float32)
angle = torch.acos(cosine)  # nan
