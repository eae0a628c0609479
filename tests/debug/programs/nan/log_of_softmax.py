"""Logits of 1000, by the formula of a textbook."""

import torch

logits = torch.tensor([1000.0, 0.0])
weights = torch.exp(logits)  # nan
softmax = weights / weights.sum()
