"""Several stages for each process, against one process."""

from __future__ import annotations

import pytest

from tests.distributed.processes import run

PROGRAM = """
from flambeau.distributed import pipelining
LOSS = torch.nn.functional.mse_loss

def batch(name, count):
    torch.manual_seed(2)
    total = 2 * SIZE
    blocks = [torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()) for _ in range(total)]
    x, target = torch.randn(16, 4), torch.randn(16, 4)
    stages = [pipelining.PipelineStage(blocks[n], n, total, "cpu") for n in (RANK, RANK + SIZE)]
    schedule = getattr(pipelining, name)(stages, n_microbatches=count, loss_fn=LOSS)
    losses, given = [], [x] if RANK == 0 else []
    wanted = dict(target=target, losses=losses) if RANK == SIZE - 1 else {}
    seen = schedule.eval(*given, **wanted)
    seen = schedule.step(*given, **wanted)
    found = [p.grad.clone() for n in (RANK, RANK + SIZE) for p in blocks[n].parameters()]
    for block in blocks:
        block.zero_grad()
    whole = torch.nn.Sequential(*blocks)(x)
    loss = LOSS(whole, target)
    loss.backward()
    same = [torch.allclose(a, b.grad, atol=1e-6) for a, b in zip(
        found, (p for n in (RANK, RANK + SIZE) for p in blocks[n].parameters()), strict=True)]
    if RANK == SIZE - 1:
        mean = sum(each.item() for each in losses) / len(losses)
        same += [torch.allclose(seen, whole), abs(mean - loss.item()) < 1e-6]
    return all(same) and (seen is None) == (RANK != SIZE - 1)

def error(function):
    try:
        function()
    except Exception as failed:
        return f"{type(failed).__name__}: {failed}"

stage = lambda: pipelining.PipelineStage(torch.nn.Linear(2, 2), RANK, 2 * SIZE, "cpu")
tell([batch("ScheduleInterleaved1F1B", 4), batch("ScheduleInterleaved1F1B", 2),
      batch("ScheduleLoopedBFS", 8),
      error(lambda: pipelining.ScheduleLoopedBFS([stage()], 4)),
      error(lambda: pipelining.ScheduleGPipe(stage(), 4))])
"""


@pytest.mark.parametrize("size", [1, 2])
def test_training(size: int):
    for rank, seen in enumerate(run(PROGRAM, size)):
        assert seen[:3] == [True] * 3
        stages = list(range(rank, 2 * size, size))
        assert seen[3] == f"ValueError: this process has to have the stages {stages}, and has " \
                          f"[{rank}]"  # fmt: skip
        assert seen[4].startswith("NotImplementedInFlambeau: ")
