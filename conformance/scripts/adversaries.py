"""A GAN with spectral norm and a gradient penalty, and a small Q-learner with replay memory."""

import random
from collections import deque, namedtuple

import torch
from torch import nn, optim

random.seed(1)
torch.manual_seed(1)


def initialise(module):
    name = module.__class__.__name__
    if name.find("Conv") != -1:
        nn.init.normal_(module.weight.data, 0.0, 0.02)
    elif name.find("BatchNorm") != -1:
        nn.init.normal_(module.weight.data, 1.0, 0.02)
        nn.init.constant_(module.bias.data, 0)


generator = nn.Sequential(
    nn.ConvTranspose2d(8, 16, 4, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
    nn.ConvTranspose2d(16, 1, 4, 2, 1, bias=False), nn.Tanh(),
).apply(initialise)  # fmt: skip
critic = nn.Sequential(
    nn.Conv2d(1, 16, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
    nn.utils.parametrizations.spectral_norm(nn.Conv2d(16, 1, 4)), nn.Flatten(0),
).apply(initialise)  # fmt: skip
print(critic)
of_generator = optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
of_critic = optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
real = torch.rand(16, 1, 8, 8) * 2 - 1


def gradient_penalty(real, fake):
    mix = torch.rand(real.size(0), 1, 1, 1).expand_as(real)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    scores = critic(between)
    grads = torch.autograd.grad(
        outputs=scores, inputs=between, grad_outputs=torch.ones_like(scores),
        create_graph=True, retain_graph=True, only_inputs=True,
    )[0]  # fmt: skip
    return ((grads.view(len(real), -1).norm(2, dim=1) - 1) ** 2).mean()


for step in range(4):
    critic.zero_grad()
    true, false = torch.full((16,), 1.0, dtype=torch.float), torch.zeros(16)
    of_real = criterion(critic(real), true)
    fake = generator(torch.randn(16, 8, 1, 1))
    of_fake = criterion(critic(fake.detach()), false)
    penalty = gradient_penalty(real, fake.detach())
    (of_real + of_fake + 0.1 * penalty).backward()
    of_critic.step()
    generator.zero_grad()
    of_fooled = criterion(critic(fake), true)
    of_fooled.backward()
    of_generator.step()
    print(f"{step} {of_real + of_fake:.5f} {of_fooled.item():.5f} {penalty.item():.5f}")

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
memory = deque([], maxlen=200)


def q_network():
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))


policy, target = q_network(), q_network()
target.load_state_dict(policy.state_dict())
optimizer = optim.AdamW(policy.parameters(), lr=1e-2, amsgrad=True)


def choose(state):
    if random.random() < 0.3:
        return torch.tensor([[random.randrange(2)]], dtype=torch.long)
    with torch.no_grad():
        return policy(state).max(1).indices.view(1, 1)


def learn(batch):
    alive = torch.tensor([state is not None for state in batch.next_state], dtype=torch.bool)
    future = torch.zeros(len(batch.state))
    with torch.no_grad():
        later = torch.cat([state for state in batch.next_state if state is not None])
        future[alive] = target(later).max(1).values
    values = policy(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
    wanted = (future * 0.9 + torch.cat(batch.reward)).unsqueeze(1)
    loss = nn.SmoothL1Loss()(values, wanted)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy.parameters(), 100)
    optimizer.step()
    mine, theirs = policy.state_dict(), target.state_dict()
    target.load_state_dict({key: mine[key] * 0.05 + theirs[key] * 0.95 for key in mine})
    return loss


for step in range(60):
    state = torch.randn(1, 4)
    action = choose(state)
    reward = torch.tensor([float(action.item() == (state[0, 0] > 0))])
    memory.append(Transition(state, action, torch.randn(1, 4) if step % 7 else None, reward))
    if len(memory) >= 16:
        loss = learn(Transition(*zip(*random.sample(memory, 16), strict=True)))
        if step % 10 == 0:
            print(step, f"{loss.item():.6f}")
returns = torch.tensor([1.0, 0.5, 2.0])
print((returns - returns.mean()) / (returns.std() + torch.finfo(torch.float32).eps))
