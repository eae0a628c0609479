"""All pairs, on purpose: distances, kernels, masks of order, tables of rotation."""

import torch

torch.manual_seed(0)
points = torch.randn(8, 3)
squares = points.square().sum(1)
distances = squares[:, None] + squares[None, :] - 2 * points @ points.T
norms = points.square().sum(1, keepdim=True)
same = norms + norms.view(-1) - 2 * points @ points.T
assert torch.allclose(distances, same, atol=1e-5)
kernel = torch.exp(-distances.clamp(min=0) / 2)
mean_kernel = kernel.mean()
causal = torch.arange(6)[:, None] >= torch.arange(6)
labels = torch.randint(0, 3, (8,))
alike = (labels.unsqueeze(1) == labels).float().mean()
angles = torch.outer(torch.arange(8.0), 1 / 10000 ** (torch.arange(8.0) / 8))
positions = torch.arange(8.0).unsqueeze(1) * (1 / 10000 ** (torch.arange(8.0) / 8))
assert torch.allclose(angles, positions)
mean_distance = (points[:, None] - points[None]).norm(dim=-1).mean()
