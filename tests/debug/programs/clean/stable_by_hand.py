"""Stable forms of softmax and its relatives, written out."""

import torch

logits = torch.tensor([[1000.0, 0.0], [-1000.0, 3.0]], requires_grad=True)
shifted = logits - logits.max(dim=1, keepdim=True).values
weights = shifted.exp() / shifted.exp().sum(dim=1, keepdim=True)
total = logits.amax(1) + torch.log(torch.exp(shifted).sum(1))
positive = logits.clamp(min=0) + torch.log1p(torch.exp(-logits.abs()))
length = torch.sqrt(logits.square().sum(1) + 1e-12)
(weights.sum() + total.sum() + positive.sum() + length.sum()).backward()
entropy = -(weights * torch.log_softmax(logits, 1)).sum(1)
