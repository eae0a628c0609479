"""julius: filters and resampling."""

import julius
import torch

torch.manual_seed(0)
x = torch.randn(2, 1000)
print(
    julius.resample_frac(x, 4, 5).square().sum().item(),
    julius.lowpass_filter(x, 0.1).std().item(),
    julius.highpass_filter(x, 0.1).std().item(),
    julius.bandpass_filter(x, 0.1, 0.3).std().item(),
)
print(
    julius.split_bands(x, 1000, 4).square().mean((1, 2)).tolist(),
    julius.fft_conv1d(x[None], torch.randn(3, 2, 64)).std().item(),
)
x.requires_grad_()
julius.resample_frac(x, 3, 2).square().mean().backward()
print(x.grad.norm().item())
