"""Tensors: indices, views, writing in place, making them, modes."""

from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


def indexing(x: Tensor, i: int, rows: Tensor) -> List[Tensor]:
    return [
        x[0], x[-1], x[i], x[1:], x[:, 1], x[..., 0], x[None], x[:, None, 1:], x[::2, :-1],
        x[rows], x[rows, 0], x[:, rows], x[x > 2], x[rows][:, [0, 1]], x[i, i], x[i:, i], x[rows, rows],
    ]  # fmt: skip


def writing(n: int, rows: Tensor) -> Tuple[Tensor, Tensor]:
    x = torch.zeros(n, n)
    x[0] = 1.0
    x[1, 2] = 5
    x[:, 1] += 2
    x[-1, :] = torch.arange(n, dtype=torch.float)
    x[rows] *= 3
    x[x > 8] = -1
    x[rows, rows] = torch.ones(len(rows)) * 7
    x[:2, :2] = x[-2:, -2:].clone()
    y = x.view(-1)
    y[0] = 100.0
    x.t()[1] = -2.0
    x[0, 0] -= 1
    return x, y


def in_place(x: Tensor) -> Tuple[Tensor, Tensor]:
    y = x.clone()
    z = y
    y += 1
    y *= x
    y -= 0.5
    y /= 2
    y.add_(x).mul_(2).clamp_(max=10)
    w = y[0]
    w.zero_()
    y.t_()
    return z, torch.sigmoid_(y * 2)


def made(n: int, like: Tensor) -> List[Tensor]:
    return [
        torch.zeros(n, 2), torch.ones([n], dtype=torch.int64), torch.full((n, n), 2.5), torch.eye(n),
        torch.arange(n), torch.arange(1, n, 2), torch.arange(0.0, 1.0, 0.25), torch.linspace(0, 1, n),
        torch.empty(n, 0), torch.tensor([1, 2]), torch.tensor([[1.0], [2.0]], dtype=torch.double),
        torch.tensor(3), torch.tensor(True), torch.zeros_like(like), torch.full_like(like, 3),
        like.new_zeros(n), like.new_ones((2, n)), like.new_full([n], 4), like.new_empty(0),
        torch.zeros(n, device=like.device, dtype=like.dtype), torch.as_tensor(2.5),
        torch.tril(torch.ones(n, n)), torch.zeros(n).to(torch.float16).to("cpu"),
    ]  # fmt: skip


def shapes(x: Tensor) -> Tuple[List[Tensor], List[int], Tuple[int, int]]:
    a, b = x.shape
    first, second = x.split(1)
    chunks = x.chunk(2, dim=1)
    left, right = torch.split(x, [1, b - 1], dim=1)
    everything = [
        x.view(b, a), x.reshape(-1), x.t(), x.permute(1, 0), x.unsqueeze(0).squeeze(), x.expand(2, a, b),
        x.flatten(), x.repeat(1, 2), torch.cat([x, x], dim=1), torch.stack((x, x), -1), x.transpose(0, 1),
        first, second, chunks[0], left, right, x.unbind(1)[0], x.narrow(1, 1, 2), x.roll(1, 0),
    ]  # fmt: skip
    values, indices = x.max(dim=1)
    top = torch.topk(x, 2)
    ordered, order = torch.sort(x, dim=1, descending=True)
    everything += [values, indices, top.values, top[1], ordered, order]
    sizes = list(x.size()) + [x.dim(), x.numel(), x.stride(0), len(x)] + x.shape[1:]
    return everything, sizes, (a, b)


def modes(x: Tensor, train: bool) -> Tuple[Tensor, Tensor, Tensor, bool]:
    with torch.no_grad():
        a = x * 2
        quiet = a.requires_grad
    b = x * 3
    c = torch.dropout(x, 0.0, train).detach()
    return a + b, F.dropout(b, 0.0, train), c, quiet


def random_numbers(n: int) -> List[Tensor]:
    torch.manual_seed(5)
    first = torch.rand(n)
    second = torch.randn(n, 2)
    third = torch.randint(0, 10, [n])
    shuffled = torch.randperm(n)
    drawn = torch.bernoulli(torch.full([n], 0.5))
    noise = torch.empty(n).uniform_(-1.0, 1.0).normal_()
    return [first, second, third, shuffled, drawn, noise, torch.rand_like(second)]


def statistics(x: Tensor, dim: Optional[int]) -> List[Tensor]:
    if dim is None:
        return [x.sum(), x.mean(), x.std(), x.var(unbiased=False), x.norm(), x.prod(), x.argmax(), x.logsumexp(0)]
    return [
        x.sum(dim), x.mean([dim], keepdim=True), x.std(dim), x.cumsum(dim), x.softmax(dim), x.amax(dim),
        x.log_softmax(dim), x.argmin(dim), x.any(dim), torch.linalg.vector_norm(x, dim=dim),
        F.normalize(x, dim=dim), torch.where(x > 0, x, -x), x.masked_fill(x < 0, 0.0), x.gather(dim, x.argsort(dim)),
    ]  # fmt: skip


PROGRAMS = {
    "indexing": (indexing, [(torch.arange(9.0).reshape(3, 3), 1, torch.tensor([2, 0]))]),
    "writing": (writing, [(4, torch.tensor([0, 2])), (3, torch.tensor([1]))]),
    "in_place": (in_place, [(torch.arange(4.0).reshape(2, 2),)]),
    "made": (made, [(3, torch.ones(2)), (1, torch.ones(1, dtype=torch.float64))]),
    "shapes": (shapes, [(torch.tensor([[3.0, 1.0, 2.0], [5.0, 6.0, 4.0]]),)]),
    "modes": (modes, [(torch.ones(2), True), (torch.ones(2), False)]),
    "random_numbers": (random_numbers, [(5,)]),
    "statistics": (statistics, [(torch.randn(3, 4), None), (torch.randn(3, 4), 0), (torch.randn(3, 4), -1)]),
}
