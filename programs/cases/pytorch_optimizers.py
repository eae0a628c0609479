"""pytorch-optimizer: steps of several optimizers."""

import pytorch_optimizer
import torch

names = ("Lion", "AdaBelief", "Lamb", "RAdam", "Ranger", "AdamP", "DiffGrad", "Adan", "SGDP")
for name in names:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = getattr(pytorch_optimizer, name)(net.parameters(), lr=1e-2)
    x = torch.randn(16, 4)
    for _ in range(4):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
    print(name, loss.item(), sum(p.sum().item() for p in net.parameters()))
