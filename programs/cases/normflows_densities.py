"""normflows: normalizing flows."""

import torch

torch.set_default_dtype(torch.float64)  # steps and signs of tiny gradients hang on rounding
import normflows as nf  # noqa: E402  its defaults take the type that is the default at import

torch.manual_seed(0)
base = nf.distributions.base.DiagGaussian(2)
flows = []
for _ in range(2):
    flows += [
        nf.flows.AffineCouplingBlock(nf.nets.MLP([1, 8, 8, 2], init_zeros=True)),
        nf.flows.Permute(2, mode="swap"),
        nf.flows.ActNorm(2),
        nf.flows.AutoregressiveRationalQuadraticSpline(2, 1, 8, num_bins=4),
        nf.flows.LULinearPermute(2),
    ]
flows += [nf.flows.Planar((2,)), nf.flows.Radial((2,))]
m = nf.NormalizingFlow(base, flows[:-2], nf.distributions.TwoMoons())
opt = torch.optim.Adam(m.parameters(), 1e-2)
for _ in range(4):
    x = m.p.sample(16)
    opt.zero_grad()
    loss = m.forward_kld(x)
    loss.backward()
    opt.step()
    print(loss.item())
print(m.sample(3)[0].tolist(), m.reverse_kld(8).item())
z, ld = flows[-2](torch.ones(2, 2))
print(z.tolist(), ld.tolist())
