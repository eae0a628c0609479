"""A mesh of two dims, as the guides show it: tensor parallelism inside, fully_shard around it; then
copies of what is in parts (HSDP); started by torchrun."""

import json
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

STEPS = 3
ROWS = 8


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w1, self.w2 = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.w2(torch.tanh(self.w1(x)))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.feed_forward = nn.LayerNorm(8), FeedForward()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.feed_forward(self.norm(x))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(12, 8)
        self.layers = nn.ModuleList([Block() for _ in range(2)])
        self.norm, self.output = nn.LayerNorm(8), nn.Linear(8, 12)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


def tensor_parallel(model: Model, mesh: DeviceMesh) -> None:
    around = {
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "output": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    }
    parallelize_module(model, mesh, around)
    inside = {
        "norm": SequenceParallel(),
        "feed_forward": PrepareModuleInput(
            input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)
        ),
        "feed_forward.w1": ColwiseParallel(),
        "feed_forward.w2": RowwiseParallel(output_layouts=Shard(1)),
    }
    for layer in model.layers:
        parallelize_module(layer, mesh, inside)


def shard(model: Model, mesh: DeviceMesh) -> None:
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


def trained(model: Model, place: int, shares: int, alone: bool) -> list[float]:
    """Losses and norms of gradients."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    tokens = (torch.arange(ROWS * 6) * 7 % 11).reshape(ROWS, 6)
    share = ROWS // shares
    mine = tokens[place * share : (place + 1) * share]
    losses, norms = [], []
    for _ in range(STEPS):
        output = model(mine).flatten(0, 1)
        loss = nn.functional.cross_entropy(output, mine.roll(1, 1).flatten())
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        norms.append(norm.full_tensor().item() if isinstance(norm, DTensor) else norm.item())
        optimizer.step()
        optimizer.zero_grad()
        seen = loss.detach().clone()
        if not alone:
            dist.all_reduce(seen)
            seen /= dist.get_world_size()
        losses.append(seen.item())
    return [*losses, *norms]


def main() -> None:
    alone = sys.argv[1] == "alone"
    rank, size = 0, 1
    if not alone:
        dist.init_process_group("gloo")
        rank, size = dist.get_rank(), dist.get_world_size()
    seen, states = [], {}
    for names in (("dp", "tp"), ("replicate", "shard")):
        torch.manual_seed(0)
        model = Model()
        place, shares = 0, 1
        if not alone:
            mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=names)
            if names[1] == "tp":
                place, shares = mesh.get_local_rank("dp"), 2
                tensor_parallel(model, mesh["tp"])
                shard(model, mesh["dp"])
            else:
                place, shares = rank, size
                shard(model, mesh)
        seen += trained(model, place, shares, alone)
        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        state = model.state_dict() if alone else get_model_state_dict(model, options=options)
        assert alone or rank == 0 or state == {}
        assert not any(isinstance(value, DTensor) for value in state.values())
        states |= {f"{names[1]} {name}": value.flatten().tolist() for name, value in state.items()}
    if rank == 0:
        order = [*seen[:STEPS], *seen[2 * STEPS : 3 * STEPS]]
        norms = [*seen[STEPS : 2 * STEPS], *seen[3 * STEPS :]]
        print(json.dumps(order))
        print(json.dumps({"norms": norms, **states}))
    if not alone:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
