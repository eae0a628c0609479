"""Random numbers. Each program gets a tensor of 4 by 4."""

import torch


def random_integers(x):
    return x.clone().random_().shape


def exponential(x):
    return x.clone().exponential_().shape


def cauchy(x):
    return x.clone().cauchy_().shape


def geometric(x):
    return x.clone().geometric_(0.5).shape


def log_normal(x):
    return x.clone().log_normal_().shape


def normal(x):
    return x.clone().normal_(0.0, 1.0).shape


def uniform(x):
    return x.clone().uniform_(0.0, 1.0).shape


def bernoulli(x):
    return x.clone().bernoulli_(0.5).shape


def multinomial(x):
    return torch.multinomial(torch.softmax(x, -1), 2).shape


def randperm(x):
    return torch.randperm(5).shape


def random_factories(x):
    return (
        torch.rand(2, 3).shape,
        torch.randn([2, 3]).shape,
        torch.randint(5, (2,)).shape,
        torch.randint(0, 5, [2]).shape,
        torch.rand_like(x).shape,
        torch.randn_like(x).shape,
        torch.randint_like(x, 3).shape,
    )


def random_below(x):
    return x.clone().random_(5).shape


def random_between(x):
    return x.clone().random_(0, 5).shape
