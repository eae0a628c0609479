"""pyro, gpytorch and zuko: a fit of each."""

import gpytorch
import pyro
import torch
import zuko
from pyro.distributions import Gamma, Normal
from pyro.infer import SVI, Trace_ELBO

pyro.set_rng_seed(0)
data = torch.randn(20) + 3


def model(data):
    mean, scale = pyro.sample("mean", Normal(0.0, 5.0)), pyro.sample("scale", Gamma(2.0, 2.0))
    with pyro.plate("data", len(data)):
        pyro.sample("seen", Normal(mean, scale), obs=data)


guide = pyro.infer.autoguide.AutoNormal(model)
svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
print("pyro", [svi.step(data) for _ in range(5)])


class Process(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


x = torch.linspace(0, 1, 12)
y = torch.sin(6 * x)
likelihood = gpytorch.likelihoods.GaussianLikelihood()
process = Process(x, y, likelihood)
optimizer = torch.optim.Adam(process.parameters(), lr=0.1)
marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, process)
for _ in range(5):
    optimizer.zero_grad()
    loss = -marginal(process(x), y)
    loss.backward()
    optimizer.step()
    print("gpytorch", loss.item())
process.eval()
with torch.no_grad():
    print("predicted", process(torch.tensor([0.33, 0.77])).mean.tolist())

torch.manual_seed(1)
flow = zuko.flows.NSF(features=3, context=2, transforms=2, hidden_features=(16, 16))
loss = -flow(torch.randn(8, 2)).log_prob(torch.randn(8, 3)).mean()
loss.backward()
print("zuko", loss.item(), sum(p.grad.norm().item() for p in flow.parameters()))
