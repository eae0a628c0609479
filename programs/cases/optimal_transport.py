"""geomloss: Sinkhorn divergences and kernel norms between clouds of points, with gradients."""

import torch
from geomloss import SamplesLoss

torch.manual_seed(0)
here = torch.randn(40, 2, requires_grad=True)
there = torch.randn(30, 2) * 0.5 + 1
heavy = torch.softmax(torch.randn(40), 0).requires_grad_()
light = torch.softmax(torch.randn(30), 0)
for name, options in {
    "sinkhorn": {"p": 2, "blur": 0.1},
    "sinkhorn of order 1": {"p": 1, "blur": 0.2, "scaling": 0.7},
    "unbalanced": {"p": 2, "blur": 0.1, "reach": 0.5},
    "without debiasing": {"p": 2, "blur": 0.3, "debias": False},
    "gaussian": {"loss": "gaussian", "blur": 0.5},
    "laplacian": {"loss": "laplacian", "blur": 0.5},
    "energy": {"loss": "energy"},
}.items():
    measure = SamplesLoss(**{"loss": "sinkhorn", "backend": "tensorized", **options})
    plain = measure(here, there)
    (slope,) = torch.autograd.grad(plain, here)
    weighted = measure(heavy, here, light, there)
    slopes = torch.autograd.grad(weighted, (heavy, here))
    print(name, plain.item(), slope.abs().sum().item(), slope[0].tolist())
    print("   weighted", weighted.item(), [s.abs().sum().item() for s in slopes])
batches = SamplesLoss("sinkhorn", p=2, blur=0.2)(torch.randn(3, 16, 3), torch.randn(3, 16, 3))
print("batches", batches.tolist())
left, right = SamplesLoss("sinkhorn", blur=0.2, potentials=True)(heavy, here, light, there)
print("potentials", left.sum().item(), right.sum().item(), left[0, :3].tolist())


def cost(x, y):
    return (x[:, :, None] - y[:, None]).abs().sum(-1)


print("own cost", SamplesLoss("sinkhorn", blur=0.2, cost=cost)(here[None], there[None]).item())
points = here.detach().clone().requires_grad_()
flow = torch.optim.SGD([points], lr=5.0)
for step in range(5):
    flow.zero_grad()
    loss = SamplesLoss("sinkhorn", p=2, blur=0.05)(points, there)
    loss.backward()
    flow.step()
    print("flow", step, loss.item())
