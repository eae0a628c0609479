"""DistributedDataParallel in processes that the program starts itself, as its guide shows it: a
plain step, a checkpoint that one process writes and all read, a model with parts on two devices."""

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel

STEPS = 4


class ToyModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net1, self.relu, self.net2 = nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net2(self.relu(self.net1(x)))


class ToyModelOnTwoDevices(nn.Module):
    def __init__(self, first: str, second: str) -> None:
        super().__init__()
        self.first, self.second = first, second
        self.net1, self.net2 = nn.Linear(10, 10).to(first), nn.Linear(10, 5).to(second)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.net1(x.to(self.first)))
        return self.net2(x.to(self.second))


def set_up(rank: int, size: int) -> None:
    dist.init_process_group("gloo", rank=rank, world_size=size)


def trained(model: nn.Module, rank: int, size: int) -> list[float]:
    """Losses of some steps, averaged over the processes."""
    x = torch.arange(160.0).reshape(16, 10).mul(0.37).sin()
    y = x @ torch.arange(50.0).reshape(10, 5).cos()
    share = 16 // size
    mine = slice(rank * share, (rank + 1) * share)
    optimizer = optim.SGD(model.parameters(), lr=0.02)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[mine]), y[mine])
        loss.backward()
        optimizer.step()
        seen = loss.detach().clone()
        if size > 1:
            dist.all_reduce(seen)
        losses.append(seen.item() / size)
    return losses


def basic(rank: int, size: int, wrap: Callable[[nn.Module], nn.Module]) -> list[float]:
    torch.manual_seed(0)
    return trained(wrap(ToyModel()), rank, size)


def checkpoint(rank: int, size: int, wrap: Callable[[nn.Module], nn.Module]) -> list[float]:
    torch.manual_seed(1)
    model = wrap(ToyModel())
    path = Path(tempfile.gettempdir(), f"model-{os.environ['MASTER_PORT']}.checkpoint")
    if rank == 0:
        torch.save(model.state_dict(), path)
    if size > 1:
        dist.barrier()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(rank)
    places = {"cuda:0": f"cuda:{rank}"}
    model.load_state_dict(torch.load(path, map_location=places, weights_only=True))
    losses = trained(model, rank, size)
    again = torch.load(path, map_location=lambda storage, place: storage, weights_only=True)
    assert list(again) == list(model.state_dict())
    if size > 1:
        dist.barrier()
    if rank == 0:
        path.unlink()
    return losses


def model_parallel(rank: int, size: int, wrap: Callable[[nn.Module], nn.Module]) -> list[float]:
    torch.manual_seed(2)
    return trained(wrap(ToyModelOnTwoDevices("cpu", "cpu:0")), rank, size)


PARTS = (basic, checkpoint, model_parallel)


def demo(rank: int, size: int, part: int, losses: Any) -> None:
    """One process of one part."""
    set_up(rank, size)
    seen = PARTS[part](rank, size, DistributedDataParallel)
    if rank == 0:
        losses.put(seen)
    dist.destroy_process_group()


def main(mode: str, size: int, *ports: str) -> None:
    os.environ["MASTER_ADDR"] = "localhost"
    seen: list[float] = []
    for number, part in enumerate(PARTS):
        os.environ["MASTER_PORT"] = ports[number]
        if mode == "alone":
            seen += part(0, 1, lambda model: model)
            continue
        losses = mp.get_context("spawn").SimpleQueue()
        mp.spawn(demo, args=(size, number, losses), nprocs=size, join=True)
        seen += losses.get()
    print(json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
