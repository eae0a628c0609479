"""torchrun with restarts, as its guide shows it: a snapshot after each epoch, from which all go on
after one of them has failed."""

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EPOCHS = 6


class Trainer:
    def __init__(self, model: torch.nn.Module, data: TensorDataset, alone: bool) -> None:
        self.rank = 0 if alone else int(os.environ["RANK"])
        self.size = 1 if alone else int(os.environ["WORLD_SIZE"])
        self.path = Path(os.environ["FOLDER"], "snapshot.pt")
        self.first, self.losses = 0, []
        sampler = None if alone else DistributedSampler(data, shuffle=False)
        self.loader = DataLoader(data, batch_size=8 // self.size, sampler=sampler)
        if not alone and self.path.exists():
            snapshot = torch.load(self.path, map_location="cpu")
            model.load_state_dict(snapshot["MODEL_STATE"])
            self.first, self.losses = snapshot["EPOCHS_RUN"], snapshot["LOSSES"]
        self.model = model if alone else DistributedDataParallel(model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)

    def epoch(self, fails: bool) -> None:
        total = torch.zeros(())
        for number, (x, y) in enumerate(self.loader):
            if fails and number == 1:
                raise RuntimeError("lost")
            self.optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
        if self.size > 1:
            dist.all_reduce(total)
        self.losses.append(total.item() / self.size)

    def train(self, restarts: int) -> None:
        for epoch in range(self.first, EPOCHS):
            if self.loader.sampler is not None and self.size > 1:
                self.loader.sampler.set_epoch(epoch)
            self.epoch(self.size > 1 and self.rank == 1 and epoch == 2 * restarts + 1 < 5)
            if self.rank == 0 and self.size > 1:
                state = self.model.module.state_dict()
                kept = {"MODEL_STATE": state, "EPOCHS_RUN": epoch + 1, "LOSSES": self.losses}
                torch.save(kept, self.path)


@record
def main() -> None:
    alone = sys.argv[1] == "alone"
    restarts = 0
    if not alone:
        dist.init_process_group("gloo")
        assert dist.is_torchelastic_launched()
        restarts = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    torch.manual_seed(0)
    x = torch.arange(320.0).reshape(32, 10).mul(0.37).sin()
    data = TensorDataset(x, x @ torch.arange(10.0).reshape(10, 1).cos())
    trainer = Trainer(torch.nn.Linear(10, 1), data, alone)
    trainer.train(restarts)
    if trainer.rank == 0:
        assert alone or restarts == 2
        print(json.dumps(trainer.losses), flush=True)
    if not alone:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
