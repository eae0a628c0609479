"""
Modules, and a curve that is fitted
===================================

**The question.** A network is a function with many parameters. Who keeps them, and how does fitting look from close?

**What you need to know.** :ref:`Gradients <sphx_glr_gallery_03_autograd.py>`.

A module is an object that holds parameters and says in ``forward`` what it computes; it is called like a function.
Modules hold modules; the outermost one finds all parameters for the optimizer. ``nn.Linear(1, 24)`` makes 24 numbers
of the last dim's one, so that ``forward`` puts in such a dim (``unsqueeze``) and takes it out again (``squeeze``).
"""

import matplotlib.pyplot as plt
import torch
from matplotlib.animation import FuncAnimation
from torch import nn


class Curve(nn.Module):
    """A function of one number: two hidden layers."""

    def __init__(self, width: int = 24):
        super().__init__()
        self.hidden = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.hidden(x.unsqueeze(1))).squeeze(1)


torch.manual_seed(1)
model = Curve()
for name, parameter in model.named_parameters():
    print(f"{name:18} {tuple(parameter.shape)!s:10} {parameter.numel()}")

# %%
# On this page and in a notebook the module shows itself; in a script it is ``print(model)``.

model

# %%
# The data
# --------
# Sixty noisy measurements of a curve that the model does not know.

x = torch.rand(60) * 6 - 3


def truth(x):
    return torch.sin(2 * x) * torch.exp(-x.abs() / 3)


y = truth(x) + 0.08 * torch.randn(60)

# %%
# The loop
# --------
# Predict, measure, clear the old gradients, go back, step. Those lines are training; all else in this guide is put
# around them. ``mse_loss`` is the mean of the squared differences. Adam is an optimizer: it moves each parameter
# against its gradient (:ref:`the next page <sphx_glr_gallery_05_optimizers.py>` compares some). Every few steps the
# curve is kept for the animation, under ``torch.no_grad()``, where nothing is watched: these are results, not training.

optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
places = torch.linspace(-3, 3, 150)
kept, losses = [], []
for step in range(600):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 25 == 0:
        with torch.no_grad():
            kept.append((step, model(places)))
print(f"loss: first {losses[0]:.4f}, after 50 steps {losses[50]:.2f}")
print("the lowest is below 0.01:", min(losses) < 0.01)

# %%
# How it looked
# -------------
# The animation plays in the window; where there is no screen, matplotlib warns that nobody has seen it.

figure, axes = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
axes.scatter(x, y, s=14, color="#6b7f86", label="measured")
axes.plot(places, truth(places), color="#b8c4c8", label="the curve behind")
(line,) = axes.plot(places, kept[0][1], color="#e07a5f", linewidth=2, label="the model")
axes.set(ylim=(-1.3, 1.3))
axes.legend(loc="upper left")
title = axes.set_title("step 0")


def show(frame):
    step, values = kept[frame]
    line.set_ydata(values)
    title.set_text(f"step {step}")
    return line, title


animation = FuncAnimation(figure, show, frames=len(kept), interval=160)
plt.show()

# %%
# In numbers: fast at first, then ever slower. A logarithmic axis shows that it still moves.

figure, axes = plt.subplots(figsize=(6.5, 3), layout="constrained")
axes.semilogy(losses, color="#1f6f8b")
axes.axhline(0.08**2, color="#b8c4c8", linestyle="--")
axes.text(600, 0.08**2 * 1.15, "the noise", ha="right", color="#6b7f86")
axes.set(xlabel="step", ylabel="mean squared error")
plt.show()

# %%
# **What to try next.** Give the model a width of 3, then of 300. Take ``Tanh`` away: why is the result a straight line?
# Leave out ``optimizer.zero_grad()`` and watch the loss. Ask the model for ``x = 5``, where it has seen nothing.
