"""
Broadcasting, good and bad
==========================

**The question.** ``a + b`` works for tensors of different shapes. When is that a gift, and when is it a fault that
nobody reports?

**What you need to know.** Shapes, from :ref:`the first page <sphx_glr_gallery_01_tensors.py>`.

The rule: shapes are compared from the right. A dim of size 1, and one that is missing, is repeated until it
fits the other; all else is an error. Nothing is copied for that.
"""

import matplotlib.pyplot as plt
import torch

column = torch.tensor([[0.0], [10.0], [20.0]])
row = torch.tensor([1.0, 2.0, 3.0, 4.0])
total = column + row
print(column.shape, "+", row.shape, "=", total.shape)
print(total)

# %%
# Drawn: what is pale is not there in memory, it is only read again.


def draw(axes, values, real, title):
    """A tensor as a field of numbers; those outside of `real` rows and columns are repeats."""
    for i in range(3):
        for j in range(4):
            there = i < real[0] and j < real[1]
            color = "#1f6f8b" if there else "#d7e6ea"
            axes.add_patch(plt.Rectangle((j, -i), 0.92, 0.92, color=color))
            ink = "white" if there else "#6b7f86"
            text = f"{values[i, j].item():.0f}"
            axes.text(j + 0.46, -i + 0.46, text, ha="center", va="center", color=ink)
    axes.set(xlim=(-0.1, 4.1), ylim=(-2.1, 1.1), aspect="equal", title=title)
    axes.axis("off")


figure, panels = plt.subplots(1, 3, figsize=(9, 2.6), layout="constrained")
draw(panels[0], column.expand(3, 4), (3, 1), "column (3, 1)")
draw(panels[1], row.expand(3, 4), (1, 4), "+   row (4,)")
draw(panels[2], total, (3, 4), "=   (3, 4)")
plt.show()

# %%
# The good: all pairs without a loop
# ----------------------------------
# The distance of each of 200 places to each of 3 centres: (200, 1, 2) minus (1, 3, 2) is (200, 3, 2). ``None`` in an
# index puts in a dim of size 1. One more line, ``argmin`` along the centres, assigns each place to the nearest.

torch.manual_seed(0)
centres = torch.tensor([[-2.0, 0.0], [2.0, 0.5], [0.0, 2.5]])
places = centres[torch.randint(3, (200,))] + torch.randn(200, 2)
distances = (places[:, None] - centres[None]).square().sum(2).sqrt()
nearest = distances.argmin(1)
print(distances.shape, "places per centre:", torch.bincount(nearest).tolist())

figure, axes = plt.subplots(figsize=(6, 4.2), layout="constrained")
colors = ["#1f6f8b", "#e07a5f", "#81b29a"]
for k, color in enumerate(colors):
    chosen = places[nearest == k]
    axes.scatter(chosen[:, 0], chosen[:, 1], s=14, color=color)
axes.scatter(centres[:, 0], centres[:, 1], s=160, marker="*", color="black", label="centres")
axes.set(aspect="equal", title="Each place in the colour of its nearest centre")
axes.legend()
plt.show()

# %%
# The good, again: what is not stored
# -----------------------------------
# ``expand`` repeats without memory: its stride is 0 along the new dim, so that the next row is the same one again.
# ``repeat`` copies. ``untyped_storage()`` is the block of memory that a tensor looks at.

wide = row.expand(1000, 4)
print("strides:", wide.stride(), " bytes in memory:", wide.untyped_storage().nbytes())
print("after repeat:", row.repeat(1000, 1).untyped_storage().nbytes())

# %%
# The bad: a loss that is nearly right
# ------------------------------------
# Predictions of shape (4, 1) and targets of shape (4,) make a table of all pairs. The mean of its squares is
# a number, and the training even runs; but it learns the mean of all targets.

predicted = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
target = torch.tensor([1.0, 2.0, 3.0, 4.0])
print("a perfect prediction has the loss", (predicted - target).square().mean().item())
print("with equal shapes", (predicted.squeeze(1) - target).square().mean().item())

# %%
# Two habits keep it away: say the dim in every reduction, and in ``squeeze``; and compare shapes where data
# enters a loss. A sum over dim 0 would have shown four numbers where one was expected.

print((predicted - target).square().sum(0))
assert predicted.squeeze(1).shape == target.shape

# %%
# **What to try next.** Subtract each column's mean from ``places`` in one line, and then each row's: which needs
# ``keepdim=True``? Run this page as ``flambeau run --advise examples/guide/02_broadcasting.py``, which names the line
# of the bad subtraction.
