"""piq: measures of image quality, as losses with gradients, and distances of features."""

import piq
import torch

torch.manual_seed(0)
truth = torch.rand(2, 3, 192, 192)
noisy = (truth + 0.1 * torch.randn_like(truth)).clamp(0, 1).requires_grad_()
for name in (
    "psnr",
    "ssim",
    "multi_scale_ssim",
    "information_weighted_ssim",
    "gmsd",
    "vif_p",
    "fsim",
    "vsi",
    "mdsi",
    "haarpsi",
    "srsim",
    "dss",
):
    value = getattr(piq, name)(noisy, truth, data_range=1.0)
    (gradient,) = torch.autograd.grad(value.sum(), noisy)
    print(name, value.item(), gradient.abs().mean().item())
print("tv", piq.total_variation(noisy).item())
for loss in (piq.SSIMLoss(), piq.MultiScaleGMSDLoss(), piq.VIFLoss(), piq.TVLoss()):
    told = loss(noisy) if isinstance(loss, piq.TVLoss) else loss(noisy, truth)
    print(type(loss).__name__, told.item())
first, second = torch.rand(60, 8).double(), torch.rand(60, 8).double() ** 1.2
for measure in (piq.FID(), piq.KID(), piq.PR(), piq.IS()):
    print(type(measure).__name__, measure.compute_metric(first, second))
picture = torch.zeros(1, 3, 64, 64, requires_grad=True)
optimizer = torch.optim.Adam([picture], lr=0.05)
for _ in range(5):
    loss = piq.SSIMLoss()(picture.sigmoid(), truth[:1, :, :64, :64])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("towards", loss.item())
