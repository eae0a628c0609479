"""A generator and a critic, in turn; the critic's images come without gradients."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Dropout(0.2), nn.Linear(16, 1))
one = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
two = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.999))
loss = nn.BCEWithLogitsLoss()
for _ in range(6):
    real = torch.randn(12, 2)
    with torch.no_grad():
        fake = generator(torch.randn(12, 4))
    two.zero_grad()
    (loss(critic(real), torch.ones(12, 1)) + loss(critic(fake), torch.zeros(12, 1))).backward()
    two.step()
    one.zero_grad()
    loss(critic(generator(torch.randn(12, 4))), torch.ones(12, 1)).backward()
    one.step()
