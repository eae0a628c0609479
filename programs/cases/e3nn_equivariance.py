"""e3nn: representations, tensor products, spherical harmonics, gates."""

import torch
from e3nn import nn, o3

torch.manual_seed(0)
irr = o3.Irreps("2x0e+1x1o+1x2e")
print(irr.dim, irr.lmax)
x = irr.randn(4, -1)
print("rand", x.sum().item())
total = o3.Linear(irr, "3x0e+2x1o")
print("lin", total(x).norm().item())
tp = o3.FullyConnectedTensorProduct("2x0e+1x1o", "1x0e+1x1o", "2x0e+1x1o+1x1e")
a = tp(torch.randn(3, 5), torch.randn(3, 4))
print("tp", a.norm().item())
a.sum().backward()
print("grad", tp.weight.grad.norm().item())
print("sh", o3.spherical_harmonics([0, 1, 2, 3], torch.randn(3, 3), normalize=True).sum().item())
R = o3.rand_matrix()
print("D", irr.D_from_matrix(R).norm().item())
g = nn.Gate("2x0e", [torch.tanh], "1x0e", [torch.sigmoid], "1x1o")
print("gate", g(torch.randn(2, g.irreps_in.dim)).sum().item())
print("w3j", o3.wigner_3j(1, 1, 2).norm().item())
