"""
Where NaN comes from, and what a program could do better
========================================================

**The question.** The loss is ``nan`` since step 412. Which line is to blame?

**What you need to know.** The :ref:`faults <sphx_glr_gallery_11_stability.py>` of the page on stability.

By the time a loss shows ``nan`` it has passed through everything. PyTorch's ``detect_anomaly`` looks at gradients; flambeau's
``nan_guard`` looks at all results, forward and backward, and stops at the first one that is made of good numbers. Parts that
only flambeau has are left out under PyTorch.
"""

import re
import sys

import matplotlib.pyplot as plt
import torch
from torch import nn

FLAMBEAU = "flambeau" in torch.__version__


class Distance(nn.Module):
    """How far apart two learned places are: a root whose derivative at 0 is infinite."""

    def __init__(self):
        super().__init__()
        self.places = nn.Parameter(torch.tensor([[0.5, 0.0], [-0.5, 0.0]]))

    def forward(self):
        gap = self.places[0] - self.places[1]
        return (gap * gap).sum().sqrt()


model = Distance()
optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
history = []
for _ in range(8):
    loss = model()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print([f"{value:.2f}" for value in history])

# %%
# It went well for five steps. Then the places met, and all is lost at once.

figure, axes = plt.subplots(figsize=(6.5, 3), layout="constrained")
steps = torch.arange(len(history))
values = torch.tensor(history)
good = values.isfinite()
axes.plot(steps[good], values[good], marker="o", color="#1f6f8b", label="loss")
for step in steps[~good]:
    axes.axvspan(step - 0.5, step + 0.5, color="#f6d5cb")
axes.text(steps[~good].float().mean(), 0.5, "nan", ha="center", color="#c8452f", fontsize=14)
axes.set(xlabel="step", xlim=(-0.5, len(history) - 0.5))
axes.legend()
plt.show()

# %%
# The guard
# ---------
# The message names the operator, the line of the program, the module, and the numbers that went in.


def train(steps):
    model = Distance()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
    for _ in range(steps):
        optimizer.zero_grad()
        model().backward()
        optimizer.step()


if FLAMBEAU:
    try:
        with torch.debug.nan_guard():
            train(8)
    except torch.debug.NonFiniteError as error:
        text = str(error)
    text = re.sub(r"\S*[\\/](\d\d_)", r"\1", text)  # names of files without their folders
    print(text, file=sys.stderr)
else:
    try:
        with torch.autograd.detect_anomaly(check_nan=True):
            train(8)
    except RuntimeError as error:
        text = str(error)
print("caught:", "sqrt" in text.lower() or "nan" in text.lower())

# %%
# The way out here is a derivative that stays finite: ``sqrt`` of something that is never 0.

model = Distance()
optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
for _ in range(8):
    gap = model.places[0] - model.places[1]
    loss = ((gap * gap).sum() + 1e-12).sqrt()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("finite:", bool(loss.isfinite()))

# %%
# The adviser
# -----------
# ``torch.debug.advise`` looks for what costs time or goes wrong without an error. Here are three faults; run it over a program
# of yours with ``flambeau run --advise program.py``.


def careless():
    rows = torch.ones(300, 4)
    total = torch.zeros(4)
    for i in range(300):
        total = total + rows[i]  # a slice for each row
    target = torch.ones(300)
    loss = ((rows[:, :1] - target) ** 2).mean()  # (300, 1) and (300,)
    chance = torch.log(torch.softmax(rows, 1))  # two steps where one is safe
    return total, loss, chance


if FLAMBEAU:
    with torch.debug.advise(quiet=True) as report:
        careless()
    lines = [
        f"{item.topic}\n    line {item.place.line}: better {item.better}" for item in report.items
    ]
    print("\n\n".join(lines), file=sys.stderr)
total, loss, chance = careless()
print(total.tolist(), loss.item(), f"{chance[0, 0].item():.4f}")

# %%
# **What to try next.** Write the three lines of ``careless`` as advised, and look whether the report is empty. Set
# ``nan_guard("warn")`` around the first training: how many lines does it name?
