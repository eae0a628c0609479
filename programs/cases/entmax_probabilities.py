"""entmax: sparse probabilities."""

import torch
from entmax import (
    Entmax15Loss,
    SparsemaxLoss,
    budget_bisect,
    entmax15,
    entmax_bisect,
    normmax_bisect,
    sparsemax,
)

torch.manual_seed(0)
x = torch.randn(3, 6, requires_grad=True)
y = torch.tensor([1, 2, 0])
for name, f in {
    "sparsemax": sparsemax,
    "entmax15": entmax15,
    "bisect": lambda x, dim: entmax_bisect(x, torch.tensor(1.3), dim=dim),
    "normmax": lambda x, dim: normmax_bisect(x, torch.tensor(2.0), dim=dim),
    "budget": lambda x, dim: budget_bisect(x, 2, dim=dim),
}.items():
    p = f(x, dim=-1)
    (g,) = torch.autograd.grad((p * torch.arange(6.0)).sum(), x)
    print(name, p.tolist(), g.abs().sum().item())
print(Entmax15Loss()(x, y).item(), SparsemaxLoss()(x, y).item())
