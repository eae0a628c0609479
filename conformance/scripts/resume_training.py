"""A checkpoint with everything in it: the second half of a run continues the first exactly."""

import io
import random

import numpy as np
import torch
from torch import nn, optim


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(5, 16)
        self.dropout = nn.Dropout(0.3)
        self.norm = nn.BatchNorm1d(16)
        self.out = nn.Linear(16, 2)

    def forward(self, x):
        return self.out(self.norm(self.dropout(torch.relu(self.hidden(x)))))


class Run:
    def __init__(self):
        self.model = Net()
        groups = [{"params": self.model.hidden.parameters(), "lr": 3e-3}]
        groups.append({"params": [*self.model.norm.parameters(), *self.model.out.parameters()]})
        self.optimizer = optim.AdamW(groups, lr=1e-2, amsgrad=True)
        warm_up = optim.lr_scheduler.LinearLR(self.optimizer, 0.1, total_iters=3)
        cosine = optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=7)
        both = [warm_up, cosine]
        self.scheduler = optim.lr_scheduler.SequentialLR(self.optimizer, both, milestones=[3])
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)

    def parts(self):
        return {name: part for name, part in vars(self).items() if hasattr(part, "state_dict")}

    def step(self):
        x = torch.randn(12, 5) + float(np.random.rand())
        y = torch.randint(0, 2, (12,)) if random.random() < 0.9 else torch.zeros(12).long()
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.scheduler.step()
        return f"{loss.item():.6f}"


seed_everything(7)
run = Run()
print("whole ", [run.step() for _ in range(8)])

seed_everything(7)
run = Run()
print("first ", [run.step() for _ in range(4)])
checkpoint = {name: part.state_dict() for name, part in run.parts().items()}
checkpoint["rng"] = (torch.get_rng_state(), np.random.get_state(), random.getstate())
checkpoint["notes"] = {"epoch": 4, "best": torch.tensor(0.5), "shape": torch.Size([2, 3])}
torch.save(checkpoint, "checkpoint.tar")

seed_everything(99)
run = Run()
try:
    torch.load("checkpoint.tar")
except Exception as error:
    print(type(error).__name__)
checkpoint = torch.load("checkpoint.tar", map_location="cpu", weights_only=False)
for name, part in run.parts().items():
    part.load_state_dict(checkpoint[name])
torch.set_rng_state(checkpoint["rng"][0])
np.random.set_state(checkpoint["rng"][1])
random.setstate(checkpoint["rng"][2])
print("second", [run.step() for _ in range(4)])
print(run.scheduler.get_last_lr(), run.scaler.get_scale(), checkpoint["notes"])
print(run.optimizer)
state = run.optimizer.state_dict()
print(state["param_groups"][0], list(state["state"]), state["state"][0]["step"])

torch.save(run.model, "model.pt")
print(torch.load("model.pt", weights_only=False))
base = torch.arange(10.0)
buffer = io.BytesIO()
torch.save({"view": base[2:5], "base": base, "t": torch.eye(2, 3).t()}, buffer)
buffer.seek(0)
loaded = torch.load(buffer)
loaded["view"][0] = 100
print(loaded, loaded["t"].stride())
