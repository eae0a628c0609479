"""schedulefree: optimizers without a schedule, in train and eval mode, and their state."""

import schedulefree
import torch
from torch import nn

KINDS = {
    "sgd": (schedulefree.SGDScheduleFree, {"lr": 0.1, "warmup_steps": 3}),
    "adamw": (schedulefree.AdamWScheduleFree, {"lr": 0.01, "weight_decay": 0.01}),
    "adamw, one by one": (schedulefree.AdamWScheduleFree, {"lr": 0.01, "foreach": False}),
    "radam": (schedulefree.RAdamScheduleFree, {"lr": 0.01}),
    "reference": (schedulefree.AdamWScheduleFreeReference, {"lr": 0.01}),
}
torch.manual_seed(0)
x, y = torch.randn(64, 5), torch.randn(64, 1)
for name, (kind, options) in KINDS.items():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = kind(model.parameters(), **options)
    optimizer.train()
    for step in range(8):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 3:
            print(name, step, loss.item())
    optimizer.eval()
    print(name, "eval", nn.functional.mse_loss(model(x), y).item())
    state = optimizer.state_dict()
    print(name, sorted(state["state"][0]), sorted(state["param_groups"][0]))
    other = kind(model.parameters(), **options)
    other.load_state_dict(state)
    other.train()
    print(name, "train", nn.functional.mse_loss(model(x), y).item())
torch.manual_seed(1)
model = nn.Linear(5, 1)
wrapped = schedulefree.ScheduleFreeWrapper(torch.optim.SGD(model.parameters(), lr=0.05))
wrapped.train()
for _ in range(5):
    loss = nn.functional.mse_loss(model(x), y)
    wrapped.zero_grad()
    loss.backward()
    wrapped.step()
    print("wrapped", loss.item())
