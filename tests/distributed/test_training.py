"""Uneven inputs, divided optimizers, PowerSGD and pipelines, against one process."""

from __future__ import annotations

import pytest

import flambeau as torch
from tests.distributed.processes import run

START = """
from flambeau.distributed.algorithms.join import Join
from flambeau.distributed.optim import ZeroRedundancyOptimizer
def make():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2))
torch.manual_seed(1)
x = torch.randn(6, 5, 4)
"""


def test_join_with_a_divided_optimizer():
    text = START + """
seen = []
for divided in (False, True):
    model = torch.nn.parallel.DistributedDataParallel(make())
    adam = torch.optim.Adam
    if divided:
        optimizer = ZeroRedundancyOptimizer(model.parameters(), adam, lr=0.05)
    else:
        optimizer = adam(model.parameters(), lr=0.05)
    with Join([model, optimizer] if divided else [model]):
        for number in range(2 + 2 * RANK):
            optimizer.zero_grad()
            model(x[number]).square().sum().backward()
            optimizer.step()
    seen.append([v for p in model.parameters() for v in p.detach().flatten().tolist()])
tell(seen)
"""  # fmt: skip
    for plain, divided in run(text, 2):
        assert torch.allclose(torch.tensor(plain), torch.tensor(divided), atol=1e-6)


@pytest.mark.parametrize("schedule", ["ScheduleGPipe", "Schedule1F1B"])
def test_a_pipeline(schedule: str):
    text = START + f"""
from flambeau.distributed import pipelining
torch.manual_seed(2)
blocks = [torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()) for _ in range(SIZE)]
stage = pipelining.PipelineStage(blocks[RANK], RANK, SIZE, "cpu")
loss_of = torch.nn.functional.mse_loss
made = pipelining.{schedule}(stage, n_microbatches=4, loss_fn=loss_of)
losses, data, target = [], x.flatten(0, 1)[:24], x.flatten(0, 1)[6:30]
given = dict(target=target, losses=losses) if RANK == SIZE - 1 else {{}}
output = made.step(*([data] if RANK == 0 else []), **given)
pipelined = [p.grad.flatten().tolist() for p in blocks[RANK].parameters()]
blocks[RANK].zero_grad()
whole = torch.nn.Sequential(*blocks)
loss = loss_of(whole(data), target)
loss.backward()
alone = [p.grad.flatten().tolist() for p in blocks[RANK].parameters()]
near = all(torch.allclose(torch.tensor(a), torch.tensor(b), atol=1e-6)
           for a, b in zip(alone, pipelined, strict=True))
mean = sum(each.item() for each in losses) / 4
tell([near, output is None, abs(mean - loss.item()) < 1e-6])
"""  # fmt: skip
    assert run(text, 3) == [[True, True, False], [True, True, False], [True, False, True]]


def test_power_sgd_shrinks_what_is_left_out():
    text = """
from flambeau.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState
from flambeau.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import powerSGD_hook
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(30, 20))
state = PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2)
model.register_comm_hook(state, powerSGD_hook)
x, target = torch.randn(64, 30), torch.randn(64, 30) @ torch.randn(30, 20)
target = x @ torch.randn(30, 20)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
losses = []
mine = slice(RANK * 32, RANK * 32 + 32)
for _ in range(60):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x[mine]), target[mine])
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
tell([losses[0], losses[-1], model.module.weight.sum().item()])
"""
    first, second = run(text, 2)
    assert first[2] == second[2]
    assert first[1] < 0.5 * first[0]


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_gradients_are_the_averages_to_the_bit(dtype: str, views: bool):
    """Small gradients and large ones, also added to and not contiguous."""
    text = f"""
dtype, parallel = torch.{dtype}, torch.nn.parallel.DistributedDataParallel
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.some = torch.nn.ParameterList(
            [torch.nn.Parameter(torch.ones(shape, dtype=dtype))
             for shape in ((), (3,), (5, 7), (0, 2), (300, 500), (9, 2, 4))])
    def forward(self, weights):
        return sum((p.mT * w.mT if p.dim() > 1 else p * w).sum()
                   for p, w in zip(self.some, weights))
torch.manual_seed(RANK)
plain, model = Model(), parallel(Model(), gradient_as_bucket_view={views}, bucket_cap_mb=0.1)
same = []
for step in range(4):
    weights = [torch.randn(p.shape).to(dtype) for p in plain.some]
    plain(weights).backward()
    if step == 1:
        with model.no_sync():
            model(weights).backward()
        continue
    model(weights).backward()
    for mine, averaged in zip(plain.some, model.module.some):
        part = mine.grad / SIZE
        dist.all_reduce(part)
        same.append(torch.equal(part, averaged.grad))
        mine.grad = averaged.grad.clone()
    if step == 2:
        plain.zero_grad()
        model.zero_grad()
tell(same)
"""
    for same in run(text, 2):
        assert same == [True] * 18
