"""Activations that are computed twice, and a mean of weights with batch norm."""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, update_bn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(self.block() for _ in range(5))

    def block(self):
        return nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.1))

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=x.requires_grad)
        return x


model = Deep()
averaged = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batches = torch.randn(6, 10, 8, requires_grad=True).unbind()
for batch in batches:
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
    averaged.update_parameters(model)
update_bn([batch.detach() for batch in batches], averaged)
