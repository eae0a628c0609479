"""nflows: density estimation by spline flows."""

import torch
from nflows.distributions.normal import StandardNormal
from nflows.flows.base import Flow
from nflows.transforms.autoregressive import (
    MaskedAffineAutoregressiveTransform,
    MaskedPiecewiseRationalQuadraticAutoregressiveTransform,
)
from nflows.transforms.base import CompositeTransform
from nflows.transforms.lu import LULinear
from nflows.transforms.permutations import ReversePermutation

torch.manual_seed(0)
flow = Flow(
    CompositeTransform(
        [
            ReversePermutation(3),
            MaskedAffineAutoregressiveTransform(3, 8),
            LULinear(3),
            MaskedPiecewiseRationalQuadraticAutoregressiveTransform(
                3, 8, num_bins=4, tails="linear", tail_bound=3.0
            ),
        ]
    ),
    StandardNormal([3]),
)
opt = torch.optim.Adam(flow.parameters(), 1e-2)
x = torch.randn(32, 3) * 0.5 + 1
for _ in range(4):
    opt.zero_grad()
    loss = -flow.log_prob(x).mean()
    loss.backward()
    opt.step()
    print(loss.item())
torch.manual_seed(1)
print(flow.sample(3).tolist())
