"""ptwt: wavelet transforms, forward and back, with gradients."""

import ptwt
import torch

torch.manual_seed(0)
signal = torch.randn(2, 40, dtype=torch.float64, requires_grad=True)
for name in ("haar", "db3", "sym4"):
    for mode in ("zero", "reflect", "periodic"):
        parts = ptwt.wavedec(signal, name, level=2, mode=mode)
        back = ptwt.waverec(parts, name)
        sums = [part.abs().sum().item() for part in parts]
        print(name, mode, sums, [tuple(part.shape) for part in parts])
        print("   back", bool((back[:, :40] - signal).abs().max() < 1e-8))
(slope,) = torch.autograd.grad(sum(p.square().sum() for p in parts[1:]), signal)
print("slope", slope[0, :5].tolist())
image = torch.randn(2, 16, 20)
flat = ptwt.wavedec2(image, "db2", level=2, mode="symmetric")
print(
    "image", flat[0].sum().item(), [[d.abs().sum().item() for d in details] for details in flat[1:]]
)
print("   back", (ptwt.waverec2(flat, "db2")[:, :16, :20] - image).abs().max().item() < 1e-5)
cube = ptwt.wavedec3(torch.randn(1, 8, 8, 8), "haar", level=1)
print("cube", cube[0].sum().item(), sorted((k, v.abs().sum().item()) for k, v in cube[1].items()))
packet = ptwt.WaveletPacket(image[0], "haar", mode="reflect", maxlevel=2)
print("packet", [(node, packet[node].abs().sum().item()) for node in packet.get_level(2)])
steps = torch.arange(1, 8).double()
scales, _ = ptwt.cwt(signal.detach()[0], steps, "mexh")
print("continuous", scales.abs().sum(-1).tolist())
stationary = ptwt.swt(torch.randn(1, 16), "haar", level=2)
print("stationary", [part.abs().sum().item() for part in stationary])
sparse = ptwt.MatrixWavedec("db2", level=2)
print("matrix", [part.abs().sum().item() for part in sparse(torch.randn(2, 32))])
