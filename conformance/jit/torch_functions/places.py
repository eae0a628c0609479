"""Which elements, and where: indices, shapes, searching. Each program gets a tensor of 4 by 4."""

import torch


def indexing(x):
    return x[..., 0], x[:, None], x[x > 0], x[[0, 1]], x[0:2, -1]


def assignment(x):
    y = x.clone()
    y[0] = 1
    y[:, 1] = x[:, 0]
    y[y > 0] += 2.0
    return y


def scatter(x):
    return (
        torch.zeros(4, 4).scatter_(1, torch.tensor([[0, 1]]), x),
        x.gather(1, torch.tensor([[0], [1]])),
        x.index_select(0, torch.tensor([0])),
        torch.zeros(4, 4).index_add(0, torch.tensor([0, 1, 2, 3]), x),
        torch.zeros(4, 4).scatter_add(0, torch.zeros(4, 4, dtype=torch.long), x),
        torch.zeros(4, 4).index_put_((torch.tensor([0]), torch.tensor([1])), x[0, 0]),
    )


def shapes(x):
    return (
        x.roll(1, 0),
        x.flip(0),
        x.rot90(),
        x.tril(),
        x.triu(1),
        x.diag(),
        x.repeat(2, 2),
        x.expand(2, 4, 4),
        x.unfold(0, 2, 1),
        x.chunk(2),
        x.unbind(0),
        x.view(-1),
        x.reshape(2, 8),
        x.permute(1, 0),
        x.t(),
        x.transpose(0, 1),
        x.squeeze(),
        x.unsqueeze(0),
        x.movedim(0, 1),
        torch.narrow(x, 0, 0, 1),
    )


def buckets(x):
    return (
        torch.bucketize(x, torch.tensor([0.0, 1.0])),
        torch.searchsorted(torch.tensor([0.0, 1.0]), x),
        torch.histc(x, 4),
        torch.bincount(torch.tensor([0, 1, 1])),
    )


def truth(x):
    return (
        x.nonzero(),
        torch.where(x > 0),
        (x > 0).any(),
        (x > 0).all(1),
        torch.isnan(x),
        torch.isfinite(x),
        torch.allclose(x, x),
        torch.equal(x, x),
        x.isclose(x),
    )
