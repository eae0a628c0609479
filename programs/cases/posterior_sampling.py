"""azula: denoisers, samplers and guidance of diffusion models, and covariances.

In double precision: guidance divides by variances near zero.
"""

import torch
from azula import guidance
from azula.denoise import GaussianDenoiser, KarrasDenoiser, SimpleDenoiser
from azula.linalg.covariance import (
    DiagonalCovariance,
    DPLRCovariance,
    FullCovariance,
    IsotropicCovariance,
)
from azula.linalg.solve import cg, gmres
from azula.nn.dit import DiT
from azula.nn.unet import UNet
from azula.noise import CosineSchedule, VESchedule, VPSchedule
from azula.sample import (
    DDIMSampler,
    DDPMSampler,
    EulerSampler,
    HeunSampler,
    ItoSampler,
    vABSampler,
    zABSampler,
)
from torch import nn


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 32), nn.SiLU(), nn.Linear(32, 5))

    def forward(self, x, t, **words):
        return self.layers(torch.cat([x, t[..., None].expand(*x.shape[:-1], 1)], -1))


torch.set_default_dtype(torch.float64)
data = torch.randn(64, 5, generator=torch.Generator().manual_seed(0)).cumsum(1)
for kind in (KarrasDenoiser, SimpleDenoiser):
    for schedule in (VPSchedule(), CosineSchedule(), VESchedule(0.01, 10.0)):
        torch.manual_seed(1)
        denoiser = kind(Backbone(), schedule)
        optimizer = torch.optim.AdamW(denoiser.parameters(), lr=1e-2)
        for _ in range(5):
            loss = denoiser.loss(data, torch.rand(64)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(kind.__name__, type(schedule).__name__, loss.item())
spread = DPLRCovariance.from_data(data, rank=2)
for covariance in (IsotropicCovariance.from_data(data), DiagonalCovariance.from_data(data),
                   FullCovariance.from_data(data), spread):  # fmt: skip
    inverse = covariance.inv
    inverse = inverse() if callable(inverse) and not hasattr(inverse, "logdet") else inverse
    logdet = torch.zeros(1)
    if not isinstance(covariance, IsotropicCovariance):
        logdet = (
            covariance.logdet
            if isinstance(covariance.logdet, torch.Tensor)
            else covariance.logdet()
        )
    there = inverse(covariance(data))
    print(type(covariance).__name__, covariance(data).sum().item(), logdet.sum().item(),
          (there - data).abs().max().item() < 1e-3)  # fmt: skip
exact = GaussianDenoiser(data.mean(0), FullCovariance.from_data(data), VPSchedule())
for kind, options in ((DDPMSampler, {}), (DDIMSampler, {"eta": 0.5}), (EulerSampler, {}),
                      (HeunSampler, {}), (ItoSampler, {"eta": 0.5}), (zABSampler, {"order": 3}),
                      (vABSampler, {"order": 2})):  # fmt: skip
    torch.manual_seed(2)
    sampler = kind(exact, steps=8, silent=True, **options)
    start = sampler.init((16, 5))
    with torch.no_grad():
        end = sampler(start)
    print(kind.__name__, start.std().item(), end.mean(0).tolist())
seen = torch.tensor([1.0, -1.0])


def look(x):
    return x[..., :2]


noise = IsotropicCovariance(torch.tensor(0.01))
for name, made in {
    "diffpir": lambda: guidance.DiffPIRDenoiser(exact, seen, look, 0.01),
    "mmps": lambda: guidance.MMPSDenoiser(exact, seen, look, noise, iterations=2),
    "jfps": lambda: guidance.JFPSDenoiser(
        exact, seen, look, noise, IsotropicCovariance(torch.tensor(1.0))
    ),
    "tmpd": lambda: guidance.TMPDenoiser(exact, seen, look, 0.01),
}.items():
    torch.manual_seed(3)
    sampler = DDIMSampler(made(), steps=6, silent=True)
    print(name, sampler(sampler.init((4, 5))).detach().mean(0).tolist())
torch.manual_seed(4)
sampler = guidance.DPSSampler(exact, seen, look, steps=6, silent=True)
print("dps", sampler(sampler.init((4, 5))).detach().mean(0).tolist())
mask = torch.tensor([True, True, False, False, False])
sampler = guidance.RePaintSampler(exact, data[0], mask, iterations=2, steps=5, silent=True)
torch.manual_seed(5)
print("repaint", sampler(sampler.init((4, 5))).detach().mean(0).tolist())
matrix = torch.eye(5) * 3 + 0.3 * data[:5]
square = matrix @ matrix.mT
for solve in (cg, gmres):
    x = solve(lambda v: v @ square.mT, data[:3], iterations=5)
    print(solve.__name__, (x @ square.mT - data[:3]).abs().max().item() < 1e-2, x.sum().item())
torch.manual_seed(6)
unet = UNet(3, 3, mod_features=8, hid_channels=(8, 16), hid_blocks=(1, 1), norm="group", groups=4)
out = unet(torch.randn(2, 3, 16, 16), torch.randn(2, 8))
out.square().mean().backward()
print("unet", out.std().item(), sum(p.grad.abs().sum().item() for p in unet.parameters()))
dit = DiT(4, 4, mod_features=8, hid_channels=16, hid_blocks=2, attention_heads=2)
out = dit(torch.randn(2, 9, 4), torch.randn(2, 8))
print("dit", tuple(out.shape), out.std().item())
