"""denoising-diffusion-pytorch: losses, training steps and samples of several diffusions."""

import random

import torch
from denoising_diffusion_pytorch import (
    ElucidatedDiffusion,
    GaussianDiffusion,
    GaussianDiffusion1D,
    KarrasUnet,
    Unet,
    Unet1D,
)

torch.manual_seed(0)
images = torch.rand(2, 3, 16, 16)


def train(name, diffusion, data, steps=2):
    optimizer = torch.optim.Adam(diffusion.parameters(), lr=1e-3)
    for _ in range(steps):
        loss = diffusion(data)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(name, loss.item())


random.seed(0)  # which decides when a network is conditioned on itself
for objective in ("pred_v", "pred_noise", "pred_x0"):
    torch.manual_seed(1)
    unet = Unet(dim=8, dim_mults=(1, 2), attn_heads=2, attn_dim_head=8)
    diffusion = GaussianDiffusion(unet, image_size=16, timesteps=8, objective=objective,
                                  beta_schedule="cosine")  # fmt: skip
    train(objective, diffusion, images)
    print(objective, "sample", diffusion.sample(batch_size=1).mean((0, 2, 3)).tolist())
torch.manual_seed(1)
unet = Unet(dim=8, dim_mults=(1, 2), attn_heads=2, attn_dim_head=8, self_condition=True)
diffusion = GaussianDiffusion(unet, image_size=16, timesteps=12, sampling_timesteps=2,
                              min_snr_loss_weight=True, offset_noise_strength=0.1)  # fmt: skip
train("self-conditioned", diffusion, images)
print("ddim", diffusion.sample(batch_size=1).mean((0, 2, 3)).tolist())
print("between", diffusion.interpolate(images[:1], images[1:], t=3).mean((0, 2, 3)).tolist())

torch.manual_seed(1)
lines = GaussianDiffusion1D(
    Unet1D(dim=8, dim_mults=(1, 2), channels=2), seq_length=16, timesteps=10
)
train("lines", lines, torch.rand(2, 2, 16))
print("lines", lines.sample(batch_size=1).flatten()[:6].tolist())

torch.manual_seed(1)
unet = Unet(dim=8, dim_mults=(1, 2), attn_heads=2, attn_dim_head=8, learned_sinusoidal_cond=True)
elucidated = ElucidatedDiffusion(unet, image_size=16, num_sample_steps=4)
train("elucidated", elucidated, images)
print("elucidated", elucidated.sample(batch_size=1).mean((0, 2, 3)).tolist())

torch.manual_seed(1)
karras = KarrasUnet(image_size=16, dim=8, dim_max=16, num_downsamples=1, num_blocks_per_stage=1,
                    attn_dim_head=8, attn_res=(8,), num_classes=3)  # fmt: skip
out = karras(torch.rand(2, 4, 16, 16), time=torch.ones(2), class_labels=torch.tensor([0, 2]))
print("karras", out.abs().mean().item())
