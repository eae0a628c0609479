"""Softmax, and then a loss that does softmax again."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
head = torch.nn.Linear(8, 5)
scores = F.softmax(head(torch.randn(10, 8)), dim=-1)
loss = F.cross_entropy(scores, torch.arange(10) % 5)  # advice: a loss of probabilities
loss.backward()
