"""ncps: liquid time-constant and closed-form networks with a wiring, trained and saved."""

import io

import torch
from ncps.torch import LTC, CfC
from ncps.wirings import AutoNCP

torch.manual_seed(3)
times = torch.linspace(0, 6.28, 24)
inputs = torch.stack([times.sin(), times.cos()], -1).expand(4, 24, 2) * torch.rand(4, 1, 1)
targets = (2 * inputs[..., :1]).sin()
for name, model in (
    ("CfC", CfC(2, AutoNCP(14, 1))),
    ("LTC", LTC(2, AutoNCP(12, 1))),
    ("CfC, pure", CfC(2, 10, proj_size=1, mode="pure")),
    ("CfC, no gate", CfC(2, 10, proj_size=1, mode="no_gate", mixed_memory=True)),
):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(3):
        found, state = model(inputs)
        loss = (found - targets).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(name, step, loss.item())
    last = state[0] if isinstance(state, tuple) else state
    print(name, last.abs().sum().item(), sum(p.numel() for p in model.parameters()))
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    print(name, model.load_state_dict(torch.load(file)))
