"""
Indexing and gathering, and why loops are slow
==============================================

**The question.** I need other elements from each row. Must that be a loop?

**What you need to know.** :ref:`Broadcasting <sphx_glr_gallery_02_broadcasting.py>`.
"""

import time

import matplotlib.pyplot as plt
import torch

torch.manual_seed(0)
scores = torch.randn(5, 8)

# %%
# Five ways to choose
# -------------------

print("a row:          ", scores[2].shape)
print("every second:   ", scores[:, ::2].shape)
print("rows by number: ", scores[torch.tensor([0, 0, 3])].shape)
print("by condition:   ", scores[scores > 1].shape)
print("pairs:          ", scores[torch.tensor([0, 1]), torch.tensor([7, 6])].shape)

# %%
# The last line takes two elements, not four: index tensors are read together, and broadcast. So "element ``wanted[i]`` of
# row ``i``" is a pair of index tensors, or ``gather``, which takes as many from each row as there are columns of the index.

wanted = torch.tensor([3, 0, 7, 7, 1])
rows = torch.arange(5)
print(torch.equal(scores[rows, wanted], scores.gather(1, wanted[:, None]).squeeze(1)))

best = scores.topk(2, dim=1).indices
figure, axes = plt.subplots(figsize=(7.5, 4), layout="constrained")
axes.imshow(scores, cmap="YlGnBu")
for i in range(5):
    for j in best[i].tolist():
        axes.add_patch(
            plt.Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, edgecolor="#e07a5f", linewidth=3)
        )
    axes.text(wanted[i].item(), i, "●", ha="center", va="center", color="white", fontsize=14)
axes.set(
    title="dots: scores[rows, wanted]     frames: the two best of each row",
    xlabel="column",
    ylabel="row",
)
plt.show()

# %%
# The way back
# ------------
# ``scatter_add`` puts numbers where an index says, and adds up what meets. With it a histogram, a sum by group or the mean
# colour of each region is one call.

groups = torch.randint(4, (1000,))
values = torch.randn(1000) + groups
sums = torch.zeros(4).scatter_add(0, groups, values)
counts = torch.bincount(groups, minlength=4)
print("mean of each group:", [f"{m:.2f}" for m in (sums / counts).tolist()])

# %%
# What a loop costs
# -----------------
# A call of an operator takes about a microsecond, whatever it works on; the loop over rows pays that for each row. The
# same work as one call pays it once. Three ways to take a window of 16 from each row, at a place of its own:


def by_loop(data, starts):
    return torch.stack([row[s : s + 16] for row, s in zip(data, starts.tolist(), strict=True)])


def by_index(data, starts):
    columns = starts[:, None] + torch.arange(16)
    return data[torch.arange(len(data))[:, None], columns]


def by_gather(data, starts):
    return data.gather(1, starts[:, None] + torch.arange(16))


def seconds(function, *arguments):
    """The best of five."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - begin)
    return min(times)


ways = {"a loop of slices": by_loop, "two index tensors": by_index, "gather": by_gather}
sizes = [10, 100, 1000, 4000]
measured = {name: [] for name in ways}
for size in sizes:
    data = torch.randn(size, 256)
    starts = torch.randint(0, 240, (size,))
    results = [way(data, starts) for way in ways.values()]
    assert all(torch.equal(results[0], other) for other in results[1:])
    for name, way in ways.items():
        measured[name].append(seconds(way, data, starts))
print("all three give the same for", sizes, "rows")

figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
for (name, times), color in zip(measured.items(), ["#e07a5f", "#81b29a", "#1f6f8b"], strict=True):
    axes.loglog(sizes, [1e3 * t for t in times], marker="o", label=name, color=color)
axes.set(
    xlabel="rows",
    ylabel="milliseconds",
    title="A window from each row, on the machine that made this page",
)
axes.legend()
plt.show()

# %%
# When it has to be a loop over all elements, two calls help: ``x.unbind(0)`` gives all rows in one call, and
# ``x.tolist()`` all numbers as Python's own, which are faster to read than tensors of one element.
#
# **What to try next.** Sort each row and take its median by ``gather``. Compute ``sums`` above with a comparison and a
# product instead, ``(groups[:, None] == torch.arange(4))``: how much memory does that take? The next page has the case
# where the loop is the natural way to write it.
