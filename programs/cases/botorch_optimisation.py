"""botorch: a Gaussian process is fitted, and says where to look next."""

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

torch.manual_seed(0)
X = torch.rand(8, 2, dtype=torch.double)
Y = (X - 0.3).square().sum(-1, keepdim=True).neg()
gp = SingleTaskGP(X, Y)
mll = ExactMarginalLogLikelihood(gp.likelihood, gp)
fit_gpytorch_mll(mll)
p = gp.posterior(torch.tensor([[0.3, 0.3], [0.9, 0.9]], dtype=torch.double))
print("post", p.mean.flatten().tolist())
a = LogExpectedImprovement(gp, best_f=Y.max())
print("acq", a(torch.tensor([[[0.3, 0.3]]], dtype=torch.double)).item())
c, v = optimize_acqf(
    a,
    bounds=torch.tensor([[0.0, 0], [1, 1]], dtype=torch.double),
    q=1,
    num_restarts=2,
    raw_samples=8,
)
print("cand", [round(z, 2) for z in c.flatten().tolist()])
