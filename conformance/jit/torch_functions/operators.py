"""Operators with one or several results, and tensors out of nothing.

Each program gets a tensor of 4 by 4.
"""

import torch


def mixed(x):
    return (
        torch.where(x > 0, x, 0.0),
        torch.clamp(x, min=0),
        x.clamp_(max=1),
        torch.cat([x, x], 1),
        torch.stack((x, x)),
        x.T,
        x.mT,
        x.numel(),
        x.is_cuda,
        x.requires_grad,
        x.shape[0],
        x.ndim,
    )


def linalg(x):
    return (
        torch.linalg.norm(x),
        torch.linalg.det(x),
        torch.linalg.inv(x + 10 * torch.eye(4)),
        torch.linalg.vector_norm(x, dim=1),
        torch.linalg.svdvals(x),
        torch.linalg.qr(x),
    )


def ffts(x):
    return (
        torch.view_as_real(torch.fft.rfft(x)),
        torch.fft.irfft(torch.fft.rfft(x)),
        torch.fft.fftfreq(4),
    )


def named_results(x):
    return (
        x.topk(2),
        x.sort(dim=1),
        x.max(1),
        x.min(dim=0, keepdim=True),
        torch.median(x, 1),
        torch.mode(x, 1),
        torch.kthvalue(x, 2),
        torch.cummax(x, 1),
    )


def fields_of_results(x):
    r = x.topk(2)
    return r.values, r.indices, r[0]


def statistics(x):
    return (
        torch.quantile(x, 0.5),
        torch.std(x),
        torch.var(x, dim=1, unbiased=False),
        torch.std_mean(x),
        torch.var_mean(x, 1),
        torch.cov(x),
        torch.corrcoef(x),
        x.cumsum(0),
        x.cumprod(1),
        x.prod(),
        x.logsumexp(1),
        x.nansum(),
    )


def clamps(x):
    return (
        torch.clamp(x, -1, 1),
        torch.clip(x, 0.0, 0.5),
        x.clamp_min(0),
        torch.lerp(x, x, 0.5),
        torch.addcmul(x, x, x, value=0.5),
        torch.addmm(x, x, x),
        torch.baddbmm(x[None], x[None], x[None]),
    )


def bitwise(x):
    return (
        x.bitwise_not() if x.dtype == torch.int64 else x,
        torch.tensor([5]) & 3,
        torch.tensor([5]) << 1,
        torch.logical_not(x > 0),
        (x > 0) ^ (x < 1),
        torch.tensor([5]) // 2,
        torch.fmod(x, 2),
        torch.remainder(x, 2),
        torch.floor_divide(x, 2),
        torch.div(x, 2, rounding_mode="floor"),
    )


def tensor_literals(x):
    return torch.tensor([1.0, 2.0]), torch.tensor([[1, 2]]), torch.as_tensor(3), torch.tensor(True)


def factories(x):
    return (
        x.new_zeros(2, 2),
        x.new_full([2], 3.0),
        x.new_ones((2,)),
        x.new_empty(0),
        torch.zeros_like(x),
        torch.full([2], 1.5),
        torch.full((2,), 1),
        torch.arange(3),
        torch.arange(0, 1, 0.25),
        torch.linspace(0, 1, 3),
        torch.eye(2),
        torch.logspace(0, 1, 2),
        torch.empty_like(x).shape,
        torch.tril_indices(3, 3),
    )


def windows(x):
    return (
        torch.hann_window(4),
        torch.hamming_window(4),
        torch.blackman_window(4),
        torch.kaiser_window(4),
        torch.bartlett_window(4),
    )
