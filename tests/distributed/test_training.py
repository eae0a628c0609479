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
