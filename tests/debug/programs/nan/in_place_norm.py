"""Vectors made unit length in place, one of which has none."""

import torch

vectors = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
vectors /= vectors.norm(dim=1, keepdim=True)  # nan
