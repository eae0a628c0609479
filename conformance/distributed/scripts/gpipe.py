"""A transformer cut by hand into stages, as the guide of pipelines shows it: what a stage does not
have is taken out of it; GPipe, then 1F1B; started by torchrun."""

import json
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

WORDS, WIDTH, LAYERS, LENGTH = 16, 8, 4, 6


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tok_embeddings = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleDict()
        for number in range(LAYERS):
            self.layers[str(number)] = nn.TransformerDecoderLayer(
                WIDTH, 2, 16, dropout=0.0, batch_first=True
            )
        self.norm, self.output = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tok_embeddings(tokens) if self.tok_embeddings else tokens
        for layer in self.layers.values():
            x = layer(x, x)
        x = self.norm(x) if self.norm else x
        return self.output(x) if self.output else x


def stage_of(model: Transformer, rank: int, size: int) -> PipelineStage:
    share = LAYERS // size
    for number in range(LAYERS):
        if number // share != rank:
            del model.layers[str(number)]
    if rank != 0:
        model.tok_embeddings = None
    if rank != size - 1:
        model.norm = model.output = None
    return PipelineStage(model, rank, size, torch.device("cpu"))


def loss_of(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(output.reshape(-1, WORDS), target.reshape(-1))


def main() -> None:
    alone = sys.argv[1] == "alone"
    x = (torch.arange(16 * LENGTH) * 7 % 13).reshape(16, LENGTH)
    y = x.roll(1, 1)
    rank, size = 0, 1
    if not alone:
        dist.init_process_group("gloo")
        rank, size = dist.get_rank(), dist.get_world_size()
    losses = []
    for kind in (ScheduleGPipe, Schedule1F1B):
        torch.manual_seed(0)
        model = Transformer()
        schedule = None
        if not alone:
            schedule = kind(stage_of(model, rank, size), n_microbatches=4, loss_fn=loss_of)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            seen: list[torch.Tensor] = []
            if schedule is None:
                loss = loss_of(model(x), y)
                loss.backward()
                seen = [loss]
            elif rank == 0:
                schedule.step(x)
            elif rank == size - 1:
                output = schedule.step(target=y, losses=seen)
                assert tuple(output.shape) == (16, LENGTH, WORDS)
            else:
                schedule.step()
            optimizer.step()
            losses.append(sum(part.item() for part in seen) / max(len(seen), 1))
    if rank == size - 1:
        print(json.dumps(losses))
    if not alone:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
