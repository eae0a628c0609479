"""Functions that PyTorch has written in Python, in torch/functional.py, and methods that call them.

Each program gets a tensor of 4 by 4.
"""

import torch


def unique(x):
    return torch.unique(x)


def unique_with_inverse(x):
    return torch.unique(x, return_inverse=True)


def unique_rows(x):
    return torch.unique(x, sorted=True, return_inverse=True, return_counts=True, dim=0)


def unique_consecutive(x):
    return torch.unique_consecutive(x, return_counts=True)


def norm(x):
    return torch.norm(x)


def norm_of_rows(x):
    return torch.norm(x, p=2.0, dim=1)


def norm_over_dims(x):
    return torch.norm(x, p=1, dim=[0, 1], keepdim=True)


def norm_by_name(x):
    return torch.norm(x, p="fro")


def norm_method(x):
    return x.norm(p=2, dim=1, keepdim=True)


def norm_method_alone(x):
    return x.norm()


def tensordot_number(x):
    return torch.tensordot(x, x, dims=1)


def tensordot_tuple(x):
    return torch.tensordot(x, x, dims=([1], [0]))


def tensordot_lists(x):
    return torch.tensordot(x, x, dims=[[1], [0]])


def split_size(x):
    return torch.split(x, 2)


def split_sizes(x):
    return torch.split(x, [1, 3], dim=1)


def split_method(x):
    return x.split(2, dim=1)


def split_method_sizes(x):
    return x.split([1, 3], 0)


def meshgrid(x):
    return torch.meshgrid(x[0], x[1])


def meshgrid_list(x):
    return torch.meshgrid([x[0], x[1]], indexing="xy")


def stft(x):
    return torch.view_as_real(torch.stft(x.flatten(), 4, return_complex=True))


def stft_window(x):
    return torch.stft(
        x.flatten(),
        n_fft=4,
        hop_length=2,
        window=torch.hann_window(4),
        center=False,
        return_complex=False,
    )


def istft(x):
    return torch.istft(
        torch.stft(x.flatten(), 4, window=torch.ones(4), return_complex=True),
        4,
        window=torch.ones(4),
    )


def cdist(x):
    return torch.cdist(x, x)


def cdist_mode(x):
    return torch.cdist(x, x, p=1.0, compute_mode="donot_use_mm_for_euclid_dist")


def atleast_1d(x):
    return torch.atleast_1d(x)


def atleast_2d(x):
    return torch.atleast_2d([x, x])


def atleast_3d(x):
    return torch.atleast_3d(x)


def block_diag(x):
    return torch.block_diag(x, x)


def block_diag_list(x):
    return torch.block_diag([x, x])


def cartesian_prod(x):
    return torch.cartesian_prod(x[0], x[1])


def cartesian_prod_list(x):
    return torch.cartesian_prod([x[0], x[1]])


def chain_matmul(x):
    return torch.chain_matmul(x, x, x)


def multi_dot(x):
    return torch.linalg.multi_dot([x, x, x])


def lu(x):
    return torch.lu(x)


def lu_with_infos(x):
    return torch.lu(x, get_infos=True)


def lu_unpack(x):
    a, b = torch.linalg.lu_factor(x)
    return torch.lu_unpack(a, b)


def broadcast_tensors(x):
    return torch.broadcast_tensors(x, x[0])


def broadcast_tensors_list(x):
    return torch.broadcast_tensors([x, x[0]])


def einsum(x):
    return torch.einsum("ij,jk->ik", x, x)


def einsum_list(x):
    return torch.einsum("ij,jk->ik", [x, x])
