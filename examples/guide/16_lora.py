"""
Fine-tuning a small model with LoRA
===================================

**The question.** A model is trained, and now it shall do something a little different. Do all of its parameters have to move?

**What you need to know.** :ref:`Modules <sphx_glr_gallery_04_modules.py>`, :ref:`checkpoints
<sphx_glr_gallery_12_checkpoints.py>`.

LoRA leaves a weight W alone and adds a product of two thin matrices, W + B A. With rank r, A is (r, in) and B (out, r): few
numbers, which are all that is trained and all that is saved.
"""

import copy
import sys

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn.utils import parametrize

# %%
# A model that knows something
# ----------------------------
# It learns to draw a flower: from coordinates to brightness.

side = 48
lines = torch.linspace(-1, 1, side)
y, x = torch.meshgrid(lines, lines, indexing="ij")
places = torch.stack([x, y], -1).reshape(-1, 2)
features = torch.cat([f(k * places) for k in (2.0, 4.0) for f in (torch.sin, torch.cos)], 1)


def flower(petals, turn=0.0):
    angle, distance = torch.atan2(y, x), (x * x + y * y).sqrt()
    edge = 0.55 + 0.25 * torch.cos(petals * angle + turn)
    return torch.sigmoid(18 * (edge - distance)).reshape(-1, 1)


def progress(done, total):
    if sys.stderr.isatty() or "ipykernel" in sys.modules:
        end = "\n" if done == total else ""
        print(f"\r{done}/{total} steps", end=end, file=sys.stderr, flush=True)


def train(model, target, steps, lr):
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=lr)
    losses = []
    for step in range(steps):
        loss = nn.functional.mse_loss(torch.sigmoid(model(features)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        progress(step + 1, steps)
    return losses


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
before = train(model, flower(5), 140, 0.01)
print(f"five petals: {before[0]:.3f} -> {before[-1]:.2f}")

# %%
# Thin matrices
# -------------
# A parametrization computes a parameter from others, each time it is asked for. B begins with zeros, so that nothing changes at
# first.


class LoRA(nn.Module):
    def __init__(self, weight, rank):
        super().__init__()
        self.down = nn.Parameter(torch.randn(rank, weight.shape[1]) / weight.shape[1] ** 0.5)
        self.up = nn.Parameter(torch.zeros(weight.shape[0], rank))

    def forward(self, weight):
        return weight + self.up @ self.down


def with_lora(model, rank):
    model = copy.deepcopy(model)
    model.requires_grad_(False)
    for layer in model:
        if isinstance(layer, nn.Linear):
            parametrize.register_parametrization(layer, "weight", LoRA(layer.weight, rank))
            for parameter in layer.parametrizations.weight[0].parameters():
                parameter.requires_grad_(True)
    return model


def count(model):
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


# %%
# Three petals instead of five, by three ways: all parameters, rank 4, rank 1.

target = flower(3, turn=2.0)
ways = {"all": copy.deepcopy(model), "rank 4": with_lora(model, 4), "rank 1": with_lora(model, 1)}
losses = {}
for name, tuned in ways.items():
    torch.manual_seed(1)
    losses[name] = train(tuned, target, 110, 0.01)
    print(
        f"{name:7} {count(tuned):5} parameters trained, loss {losses[name][0]:.2f} -> {losses[name][-1]:.2f}"
    )

# %%
# What they have learned
# ----------------------


def drawn(model):
    with torch.no_grad():
        return torch.sigmoid(model(features)).reshape(side, side)


pictures = {"before": drawn(model), "wanted": target.reshape(side, side)}
pictures |= {name: drawn(tuned) for name, tuned in ways.items()}
figure, panels = plt.subplots(
    1, 6, figsize=(11, 2.2), layout="constrained", width_ratios=[1] * 5 + [1.6]
)
for panel, (name, picture) in zip(panels, pictures.items(), strict=False):
    panel.imshow(picture, cmap="magma", vmin=0, vmax=1)
    panel.set(title=name, xticks=[], yticks=[])
for (name, values), color in zip(losses.items(), ["#6b7f86", "#1f6f8b", "#e07a5f"], strict=True):
    panels[5].semilogy(values, label=name, color=color)
panels[5].set(title="loss")
panels[5].legend(fontsize=8)
plt.show()

# %%
# Saving the difference, and joining it
# -------------------------------------
# The file holds the thin matrices alone. For use, ``remove_parametrizations`` writes W + B A into the weight: the model is again
# as fast as it was.

tuned = ways["rank 4"]
small = {name: p for name, p in tuned.state_dict().items() if name.endswith((".down", ".up"))}
print(
    "saved:",
    sum(t.numel() for t in small.values()),
    "of",
    sum(p.numel() for p in model.parameters()),
    "numbers",
)
expected = drawn(tuned)
for layer in tuned:
    if isinstance(layer, nn.Linear):
        parametrize.remove_parametrizations(layer, "weight")
print("joined, the same picture:", torch.allclose(drawn(tuned), expected, atol=1e-6))

# %%
# **What to try next.** Which rank is as good as all parameters here? Put LoRA on the middle layer alone. Look at the singular
# values of ``ways["all"][2].weight - model[2].weight`` (``torch.linalg.svdvals``): how many matter?
