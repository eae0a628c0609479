"""Causal attention with a padding mask, by hand and by the operator."""

import math

import torch
import torch.nn.functional as F

torch.manual_seed(0)
q, k, v = (torch.randn(2, 4, 6, 8, requires_grad=True) for _ in range(3))
causal = torch.full((6, 6), -math.inf).triu(1)
lengths = torch.tensor([6, 4])
padding = torch.arange(6) >= lengths[:, None]
scores = q @ k.transpose(-2, -1) / math.sqrt(8) + causal
scores = scores.masked_fill(padding[:, None, None, :], -math.inf)
out = scores.softmax(dim=-1) @ v
allowed = (causal == 0) & ~padding[:, None, None, :]
same = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
assert torch.allclose(out, same, atol=1e-5)
(out.sum() + same.square().mean()).backward()
