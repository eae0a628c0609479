"""A distributed checkpoint of a module under fully_shard, as the guide of checkpoints shows it:
others go on from it, so many as they are; started by torchrun, twice."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

STEPS = 3


class AppState(Stateful):
    """Model and optimizer, by the names of the parameters."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = model, optimizer

    def state_dict(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optim": optimizer}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state_dict["model"],
            optim_state_dict=state_dict["optim"],
        )


class ToyModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net1, self.net2, self.net3 = nn.Linear(10, 18), nn.Linear(18, 14), nn.Linear(14, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net3(torch.tanh(self.net2(torch.tanh(self.net1(x)))))


def in_parts(model: ToyModel) -> None:
    """Layers first, then the model."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in (model.net1, model.net2):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


def trained(model: nn.Module, optimizer: torch.optim.Optimizer, alone: bool) -> float:
    """One step; its loss, averaged over the processes."""
    rank, size = (0, 1) if alone else (dist.get_rank(), dist.get_world_size())
    x = torch.arange(160.0).reshape(16, 10).mul(0.37).sin()
    y = x @ torch.arange(50.0).reshape(10, 5).cos()
    share = 16 // size
    mine = slice(rank * share, (rank + 1) * share)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x[mine]), y[mine])
    loss.backward()
    optimizer.step()
    seen = loss.detach().clone()
    if not alone:
        dist.all_reduce(seen)
    return seen.item() / size


def main() -> None:
    alone, is_second = sys.argv[1] == "alone", sys.argv[1] == "again"
    if not alone:
        dist.init_process_group("gloo")
    torch.manual_seed(7 if is_second else 0)
    model = ToyModel()
    if not alone:
        in_parts(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.2 if is_second else 0.01)
    folder = Path(os.environ["FOLDER"], "checkpoint")
    losses = torch.zeros(2 * STEPS)
    state = {"app": AppState(model, optimizer), "losses": losses}
    if is_second:
        dcp.load(state, checkpoint_id=folder)
    for step in range(2 * STEPS):
        if alone or (step >= STEPS) == is_second:
            losses[step] = trained(model, optimizer, alone)
    if not alone and not is_second:
        dcp.save(state, checkpoint_id=folder)
    if alone or dist.get_rank() == 0:
        print(json.dumps(losses.tolist()))
    if not alone:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
