"""The distance of a point from itself: its gradient is 0/0."""

import torch

points = torch.tensor([[0.0, 0.0], [3.0, 4.0]], requires_grad=True)
squares = (points - points.detach()[0]).square().sum(1)
distances = squares.sqrt()  # nan
distances.mean().backward()
