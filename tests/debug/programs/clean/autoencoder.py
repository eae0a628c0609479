"""A variational autoencoder: draws, reconstruction, and divergence from a normal distribution."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(12, 8), nn.Linear(4, 12)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
for _ in range(4):
    x = torch.rand(10, 12)
    mean, log_variance = encoder(x).chunk(2, dim=1)
    drawn = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
    reconstruction = F.binary_cross_entropy_with_logits(decoder(drawn), x, reduction="sum")
    divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
    optimizer.zero_grad()
    (reconstruction + divergence).backward()
    optimizer.step()
