"""Pipeline stages and schedules as their documentation shows them; started by torchrun."""

import json
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B

LAYERS = 8


def main() -> None:  # noqa: C901
    alone = sys.argv[1] == "alone"
    x = torch.arange(96.0).reshape(16, 6).mul(0.7).sin()
    y = x.roll(1, 1)
    loss_of = nn.functional.mse_loss
    losses: list[list[float]] = []
    rank, size = 0, 1
    if not alone:
        dist.init_process_group("gloo")
        rank, size = dist.get_rank(), dist.get_world_size()
    for each in (1, 2):  # stages in each process
        torch.manual_seed(0)
        layers = [nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(LAYERS)]
        count = each * size if not alone else 1
        long = LAYERS // count
        parts = [nn.Sequential(*layers[n * long : (n + 1) * long]) for n in range(count)]
        own = parts if alone else [parts[n] for n in range(rank, count, size)]
        parameters = [p for part in own for p in part.parameters()]
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        if not alone:
            stages = [PipelineStage(part, rank + place * size, count, torch.device("cpu"))
                      for place, part in enumerate(own)]  # fmt: skip
            if each == 1:
                schedule = Schedule1F1B(stages[0], 8, loss_fn=loss_of)
            else:
                schedule = ScheduleInterleaved1F1B(stages, 8, loss_fn=loss_of)
        for _ in range(4):
            optimizer.zero_grad()
            parts_of_loss: list[torch.Tensor] = []
            if alone:
                loss = loss_of(parts[0](x), y)
                loss.backward()
                parts_of_loss = [loss]
            elif rank == 0:
                schedule.step(x)
            elif rank == size - 1:
                schedule.step(target=y, losses=parts_of_loss)
            else:
                schedule.step()
            optimizer.step()
            losses.append([part.item() for part in parts_of_loss])
    if rank == size - 1:
        print(json.dumps([sum(parts) / len(parts) for parts in losses]))
    if not alone:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
