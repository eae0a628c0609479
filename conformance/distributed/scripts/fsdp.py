"""fully_shard as its documentation shows it: layers first, then the model; started by torchrun."""

import json
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return x + self.outer(nn.functional.gelu(self.inner(self.norm(x))))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(13, 8)
        self.layers = nn.ModuleList([Block(8) for _ in range(3)])
        self.head = nn.Linear(8, 13)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def main() -> None:
    alone = sys.argv[1] == "alone"
    torch.manual_seed(0)
    model = Model()
    size, rank = 1, 0
    if not alone:
        dist.init_process_group("gloo")
        size, rank = dist.get_world_size(), dist.get_rank()
        mesh = init_device_mesh("cpu", (size,))
        for layer in model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        assert isinstance(model, FSDPModule)
        for first, second in zip(model.layers, model.layers[1:], strict=False):
            first.set_modules_to_forward_prefetch([second])
            second.set_modules_to_backward_prefetch([first])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    tokens = (torch.arange(8 * 6) * 7 % 13).reshape(8, 6)
    share = 8 // size
    mine = tokens[rank * share : (rank + 1) * share]
    losses = []
    for _ in range(6):
        loss = nn.functional.cross_entropy(model(mine).flatten(0, 1), mine.roll(1, 1).flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        seen = loss.detach().clone()
        if not alone:
            dist.all_reduce(seen)
            seen /= size
        losses.append(seen.item())
    if rank == 0:
        print(json.dumps(losses))
    if not alone:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
