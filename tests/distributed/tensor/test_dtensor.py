"""Distributed tensors against the same program on plain tensors in one process."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed.tensor.rules.views import groups
from flambeau.distributed.tensor.spec import chunk_sizes
from tests.distributed.processes import run

PROGRAM = """
from flambeau.distributed.tensor import (
    DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor)
F = torch.nn.functional
mesh = dist.init_device_mesh("cpu", (SIZE,))

def numbers(*shape):
    count = int(np.prod(shape))
    return (((torch.arange(count) * 37) % 101).float() / 16 - 3).reshape(shape)

target = torch.tensor([1, 0, 3, -100, 1, 1, 0, 2])
def labels(x):
    return target if not isinstance(x, DTensor) else distribute_tensor(target, mesh, x.placements)
def heads(x):
    return x.view(8, 1, 2, 4)
FUNCTIONS = {
    "norm": lambda x, w: torch.linalg.vector_norm(x @ w),
    "max norm": lambda x, w: torch.linalg.vector_norm(x @ w, float("inf")),
    "mse": lambda x, w: F.mse_loss(x @ w, w),
    "mse sum": lambda x, w: F.mse_loss(x @ w, w, reduction="sum"),
    "classes": lambda x, w: F.cross_entropy((x @ w)[:, :4], labels(x)),
    "rms": lambda x, w: F.rms_norm(x @ w, (8,), w[0]),
    "attention": lambda x, w: F.scaled_dot_product_attention(
        heads(x), heads(x @ w), heads(x), is_causal=True),
    "std": lambda x, w: (x @ w).std(0),
    "amax": lambda x, w: (x @ w).amax(1),
    "silu": lambda x, w: F.silu(x @ w),
    "sort": lambda x, w: (x @ w).sort(0)[0] * w,
    "expand": lambda x, w: (x.unsqueeze(1) * w).sum((0, 2)),
    "repeat": lambda x, w: x.repeat(2, 1) @ w,
    "flatten": lambda x, w: (x @ w).flatten() * 2,
}

def gradients(function, x, w):
    result = function(x, w)
    (result * result).sum().backward()
    return [t.full_tensor() if isinstance(t, DTensor) else t
            for t in (result.detach(), x.grad, w.grad)]

failed = []
for name, function in FUNCTIONS.items():
    plain = [numbers(8, 8).requires_grad_(), (numbers(8, 8) / 8).requires_grad_()]
    expected = gradients(function, *plain)
    for one in (Replicate(), Shard(0), Shard(1)):
        for other in (Replicate(), Shard(0), Shard(1)):
            if name == "classes" and one == Shard(1):
                continue  # labels have one dim
            pair = [distribute_tensor(p.detach(), mesh, [k]).requires_grad_()
                    for p, k in zip(plain, (one, other))]
            seen = gradients(function, *pair)
            for place, (first, second) in enumerate(zip(expected, seen)):
                if not torch.allclose(first, second, rtol=1e-4, atol=1e-3):
                    failed.append([name, str(one), str(other), place])
"""


def test_gradients_are_those_of_one_process():
    assert run(PROGRAM + "tell(failed)", 2) == [[]] * 2


MODULE = (
    PROGRAM.partition("target =")[0]
    + """
def trained(placements):
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.GELU(), torch.nn.LayerNorm(12),
                                torch.nn.Linear(12, 8))
    x, y = numbers(8, 8), numbers(8, 8).flip(0)
    if placements is not None:
        distribute_module(model, mesh)
        x, y = (distribute_tensor(t, mesh, placements) for t in (x, y))
    losses = []
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        optimizer = kind(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses += [t.full_tensor().item() if isinstance(t, DTensor) else t.item()
                       for t in (loss, norm)]
    return losses

expected = trained(None)
tell([bool(np.allclose(trained([kind]), expected, rtol=1e-4))
      for kind in (Replicate(), Shard(0))])
"""
)


def test_modules_are_trained_as_in_one_process():
    assert run(MODULE, 4) == [[True, True]] * 4


RANDOM = """
from flambeau.distributed import tensor as dt
mesh = dist.init_device_mesh("cpu", (SIZE,))
torch.manual_seed(5)
drawn = [f(5, 3, device_mesh=mesh, placements=[dt.Shard(0)]).full_tensor() for f in
         (dt.rand, dt.randn)]
torch.manual_seed(5)
whole = [f(5, 3) for f in (torch.rand, torch.randn)]
dropped = torch.nn.functional.dropout(dt.ones(40, device_mesh=mesh, placements=[dt.Shard(0)]), 0.5)
kept = sorted(set(dropped.full_tensor().tolist()))
again = __import__("copy").deepcopy(dropped)
tell([all(torch.equal(a, b) for a, b in zip(drawn, whole)), kept, torch.equal(again, dropped)])
"""


def test_random_numbers_are_those_of_one_process():
    assert run(RANDOM, 2) == [[True, [0.0, 2.0], True]] * 2


@pytest.mark.parametrize("length", range(9))
def test_lengths_of_parts(length: int):
    expected = [len(part) for part in torch.arange(length).chunk(4)] if length else []
    assert chunk_sizes(length, 4) == (expected + [0] * 4)[:4]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([8, 12], [96], [([0, 1], [0])]),
        ([8, 12], [8, 3, 4], [([0], [0]), ([1], [1, 2])]),
        ([4, 6], [6, 4], [([0, 1], [0, 1])]),
        ([2, 1, 3], [2, 3], [([0], [0]), ([1], []), ([2], [1])]),
        ([2, 3], [2, 1, 3], [([0], [0]), ([1], [1, 2])]),
    ],
)
def test_dims_that_belong_together(before: list[int], after: list[int], expected: object):
    found = groups(before, after)
    assert sorted(found) == sorted(expected)


PLAIN = """
from flambeau.distributed.tensor import Replicate, Shard, distribute_tensor
from flambeau.distributed.tensor.experimental import implicit_replication
from flambeau.distributed.tensor.parallel import loss_parallel
F = torch.nn.functional
mesh = dist.init_device_mesh("cpu", (SIZE,))
numbers = ((torch.arange(48) * 37) % 101).float().reshape(6, 8) / 16
labels, weight = torch.tensor([1, 0, 7, -100, 3, 6]), torch.arange(8) / 4 + 0.5
alone = numbers.clone().requires_grad_()
expected = F.cross_entropy(alone, labels, weight)
expected.backward()
def seen(context, placement):
    scores = distribute_tensor(numbers, mesh, [placement]).requires_grad_()
    with context():
        loss = F.cross_entropy(scores, labels, weight)
        loss.backward()
    torch.testing.assert_close(loss.full_tensor(), expected)
    torch.testing.assert_close(scores.grad.full_tensor(), alone.grad)
    return str(scores.grad.placements)
placements = [seen(loss_parallel, Shard(1)), seen(implicit_replication, Shard(0))]
scores = distribute_tensor(numbers, mesh, [Shard(0)])
errors = [error_of(lambda: F.cross_entropy(scores, labels))[0],
          error_of(lambda: torch.equal(scores, numbers))[0]]
try:
    with loss_parallel():
        F.cross_entropy(scores, labels)
except ValueError as error:
    errors.append(str(error))
tell([placements, errors])
"""


def test_plain_labels_are_copies_where_the_program_says_so():
    mixed = "got mixed torch.Tensor and DTensor"
    for placements, errors in run(PLAIN, 2):
        assert placements == ["(Shard(dim=1),)", "(Shard(dim=0),)"]
        assert mixed in errors[0]
        assert errors[1].startswith(f"aten.equal.default {mixed}")
        assert errors[2] == (
            "loss_parallel() requires exactly one mesh dim to shard tensor dimension 1, but got "
            "placements (Shard(dim=0),) with 0 such mesh dim(s)."
        )
