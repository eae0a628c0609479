"""diffusers: a small U-Net, its loss, and a few steps of sampling."""

import torch
from diffusers import DDIMScheduler, DDPMScheduler, UNet2DModel

torch.manual_seed(0)
net = UNet2DModel(
    sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, norm_num_groups=8,
    block_out_channels=(16, 32), down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)  # fmt: skip
x, noise = torch.randn(2, 3, 16, 16), torch.randn(2, 3, 16, 16)
times = torch.tensor([10, 500])
noisy = DDPMScheduler().add_noise(x, noise, times)
loss = torch.nn.functional.mse_loss(net(noisy, times).sample, noise)
loss.backward()
print("loss", loss.item(), sum(p.grad.norm().item() for p in net.parameters()))
steps = DDIMScheduler()
steps.set_timesteps(4)
with torch.no_grad():
    for time in steps.timesteps:
        x = steps.step(net(x, time).sample, time, x).prev_sample
print("sample", x.mean((2, 3)).tolist())
