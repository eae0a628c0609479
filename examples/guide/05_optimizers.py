"""
Optimizers and schedules, drawn
===============================

**The question.** All optimizers go downhill. Why are there so many, and what does a schedule add?

**What you need to know.** The loop of :ref:`the page before <sphx_glr_gallery_04_modules.py>`.

A landscape of two numbers can be seen from above: a bent valley, steep across and flat along, as losses of
networks are. Here the two numbers are the parameters, and the height is the loss. ``w[..., 0]`` is the first number of
the last dim, however many dims come before: the function takes one place, or a whole field of them.
"""

import matplotlib.pyplot as plt
import torch


def landscape(w):
    """A valley along a parabola; its lowest place is (1, 1)."""
    u, v = w[..., 0], w[..., 1]
    return (1 - u) ** 2 + 10 * (v - u**2) ** 2


makers = {
    "SGD": lambda w: torch.optim.SGD([w], lr=0.01),
    "SGD with momentum": lambda w: torch.optim.SGD([w], lr=0.004, momentum=0.9),
    "RMSprop": lambda w: torch.optim.RMSprop([w], lr=0.02),
    "Adam": lambda w: torch.optim.Adam([w], lr=0.1),
}
paths = {}
for name, make in makers.items():
    w = torch.tensor([-1.4, 2.4], requires_grad=True)
    optimizer = make(w)
    path = [w.detach().clone()]
    for _ in range(150):
        optimizer.zero_grad()
        landscape(w).backward()
        optimizer.step()
        path.append(w.detach().clone())
    paths[name] = torch.stack(path)
    print(
        f"{name:18} height after 50: {landscape(path[50]):8.4f}   after 150: {landscape(path[150]):8.4f}"
    )

# %%
# From above, each from the same start, 150 steps of it. ``lr``, the learning rate, is the step width. Plain descent
# falls into the valley and creeps along its floor; momentum gathers speed there and overshoots; Adam gives each number
# a step width of its own.

u, v = torch.meshgrid(torch.linspace(-2, 2, 200), torch.linspace(-1, 3, 200), indexing="xy")
heights = landscape(torch.stack([u, v], -1))
figure, panels = plt.subplots(
    2, 2, figsize=(8.5, 7), layout="constrained", sharex=True, sharey=True
)
for panel, (name, path) in zip(panels.flat, paths.items(), strict=True):
    panel.contourf(u, v, heights.log(), levels=24, cmap="YlGnBu_r", alpha=0.75)
    panel.plot(path[:, 0], path[:, 1], color="#c8452f", marker=".", markersize=3, linewidth=1)
    panel.plot(1, 1, marker="*", markersize=14, color="#f2cc3f", markeredgecolor="black")
    panel.set(title=name, xlim=(-2, 2), ylim=(-1, 3))
plt.show()

# %%
# Schedules
# ---------
# Large steps get far, small ones come to rest: so the step width changes on the way. A schedule is asked after
# each optimizer step.

length = 200
schedules = {
    "StepLR": lambda o: torch.optim.lr_scheduler.StepLR(o, 50, gamma=0.4),
    "CosineAnnealingLR": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, length),
    "OneCycleLR": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 1.0, total_steps=length + 1),
    "warm-up, then decay": lambda o: torch.optim.lr_scheduler.SequentialLR(
        o,
        [
            torch.optim.lr_scheduler.LinearLR(o, 0.1, 1.0, 30),
            torch.optim.lr_scheduler.ExponentialLR(o, 0.985),
        ],
        [30],
    ),
}
figure, axes = plt.subplots(figsize=(8.5, 3.6), layout="constrained")
for name, make in schedules.items():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedule = make(optimizer)
    rates = []
    for _ in range(length):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    axes.plot(rates, label=name)
    print(f"{name:20} at 0: {rates[0]:.3f}  at 100: {rates[100]:.3f}  at 199: {rates[199]:.3f}")
axes.set(xlabel="step", ylabel="learning rate", title="Four schedules")
axes.legend()
plt.show()

# %%
# **What to try next.** Give SGD ``lr=0.03`` and watch it leave the picture. Turn Adam's ``betas`` to (0, 0.999). Put a
# ``CosineAnnealingLR`` on Adam here: how much lower does it come to rest?
