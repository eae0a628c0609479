"""Tensor and sequence parallelism of a whole transformer with the loss in parts, as the guide shows
them: attention on DTensors, words of the output in parts; started by torchrun."""

import json
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

WORDS, WIDTH, HEADS, LENGTH = 24, 16, 4, 8


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        batch = x.shape[0]
        q, k, v = (w(x).view(batch, LENGTH, HEADS, -1) for w in (self.wq, self.wk, self.wv))
        q, k, v = ((y * scales).transpose(1, 2) for y in (q, k, v))
        # not scaled_dot_product_attention: PyTorch's of CPUs takes no DTensors
        scores = (q @ k.transpose(2, 3)) * (WIDTH // HEADS) ** -0.5
        mixed = scores.softmax(-1) @ v
        return self.wo(mixed.transpose(1, 2).contiguous().view(batch, LENGTH, -1))


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w1, self.w2 = nn.Linear(WIDTH, 32, bias=False), nn.Linear(32, WIDTH, bias=False)
        self.w3 = nn.Linear(WIDTH, 32, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.ffn_norm = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.attention, self.feed_forward = Attention(), FeedForward()

    def forward(self, x: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x), scales)
        return x + self.feed_forward(self.ffn_norm(x))


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tok_embeddings = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList([Block() for _ in range(2)])
        self.norm, self.output = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.register_buffer("scales", torch.linspace(0.5, 1, LENGTH).reshape(1, LENGTH, 1, 1))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tok_embeddings(tokens)
        for layer in self.layers:
            x = layer(x, self.scales)
        return self.output(self.norm(x))


def in_parts(model: Transformer, size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    around = {
        "tok_embeddings": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "output": ColwiseParallel(
            input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False
        ),
    }
    parallelize_module(model, mesh, around)
    inside = {
        "attention_norm": SequenceParallel(),
        "attention": PrepareModuleInput(
            input_layouts=(Shard(1), Replicate()),
            desired_input_layouts=(Replicate(), Replicate()),
        ),
        "attention.wq": ColwiseParallel(use_local_output=False),
        "attention.wk": ColwiseParallel(use_local_output=False),
        "attention.wv": ColwiseParallel(use_local_output=False),
        "attention.wo": RowwiseParallel(output_layouts=Shard(1)),
        "ffn_norm": SequenceParallel(),
        "feed_forward": PrepareModuleInput(
            input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)
        ),
        "feed_forward.w1": ColwiseParallel(),
        "feed_forward.w2": RowwiseParallel(output_layouts=Shard(1)),
        "feed_forward.w3": ColwiseParallel(),
    }
    for block in model.layers:
        parallelize_module(block, mesh, inside)


def main() -> None:
    alone = sys.argv[1] == "alone"
    torch.manual_seed(0)
    model = Transformer()
    if not alone:
        dist.init_process_group("gloo")
        in_parts(model, dist.get_world_size())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    tokens = (torch.arange(4 * LENGTH) * 5 % 23).reshape(4, LENGTH)
    labels = tokens.roll(1, 1)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        if alone:
            loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), labels.flatten(0, 1))
            loss.backward()
        else:
            with loss_parallel():
                output = model(tokens)
                assert output.placements == (Shard(2),)
                loss = nn.functional.cross_entropy(output.flatten(0, 1), labels.flatten(0, 1))
                loss.backward()
            loss = loss.full_tensor()
        optimizer.step()
        losses.append(loss.item())
    if alone or dist.get_rank() == 0:
        print(json.dumps(losses))
    if not alone:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
