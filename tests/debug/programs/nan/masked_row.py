"""Attention in which one query may look at nothing."""

import torch

torch.manual_seed(0)
query, key = torch.randn(2, 4, 8), torch.randn(2, 4, 8)
allowed = torch.ones(4, 4).tril(-1).bool()
scores = (query @ key.transpose(1, 2)).masked_fill(~allowed, float("-inf"))
weights = scores.softmax(-1)  # nan
