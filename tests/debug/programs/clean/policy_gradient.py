"""REINFORCE: numbers are read at every step of an episode, because the world needs them."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
policy = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for _ in range(2):
    position, chosen, rewards = 0.0, [], []
    for time in range(40):
        logs = F.log_softmax(policy(torch.tensor([position, time / 40])), dim=-1)
        action = torch.multinomial(logs.exp(), 1).item()
        position += 0.1 if action else -0.1
        chosen.append(logs[action])
        rewards.append(-abs(position - 1))
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    returns = (returns - returns.mean()) / (returns.std() + 1e-8)
    loss = -(torch.stack(chosen) * returns).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
