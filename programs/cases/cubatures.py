"""torchquad: integrals in several dimensions, by rules and by chance, with gradients."""

import torch
from torchquad import VEGAS, Boole, GaussLegendre, MonteCarlo, Simpson, Trapezoid, set_up_backend

set_up_backend("torch", data_type="float64")
torch.manual_seed(1)


def wave(x):
    """A function of three numbers."""
    return torch.sin(x[:, 0]) * torch.exp(-x[:, 1]) + x[:, 2] ** 2


domain = torch.tensor([[0.0, 1.0], [0.0, 2.0], [-1.0, 1.0]], requires_grad=True)
for rule in (Trapezoid, Simpson, Boole, GaussLegendre):
    found = rule().integrate(wave, dim=3, N=9**3, integration_domain=domain)
    found.backward()
    print(rule.__name__, found.item(), domain.grad.tolist())
    domain.grad = None
print("MonteCarlo", MonteCarlo().integrate(wave, 3, 4000, domain.detach(), seed=3).item())
print("VEGAS", VEGAS().integrate(wave, 3, 4000, domain.detach(), seed=3).item())
