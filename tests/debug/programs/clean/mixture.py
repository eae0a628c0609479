"""A mixture of normal distributions, fitted by expectation and maximization."""

import math

import torch

torch.manual_seed(0)
data = torch.cat([torch.randn(40) - 3, torch.randn(40) * 0.5 + 2])
means, deviations = torch.tensor([-1.0, 1.0]), torch.ones(2)
log_weights = torch.log(torch.full((2,), 0.5))
for _ in range(10):
    scaled = (data[:, None] - means) / deviations
    joint = log_weights - 0.5 * scaled**2 - deviations.log() - 0.5 * math.log(2 * math.pi)
    share = (joint - joint.logsumexp(1, keepdim=True)).exp()
    total = share.sum(0)
    means = (share * data[:, None]).sum(0) / total
    deviations = ((share * (data[:, None] - means) ** 2).sum(0) / total).sqrt()
    log_weights = (total / len(data)).log()
assert means[0] < -2 < 1 < means[1]
