"""
Where the time goes: softmax, down to its kernel
================================================

**The question.** What does the processor do when ``torch.softmax`` runs, and is it the best it could do?

**What you need to know.** :ref:`Profiling <sphx_glr_gallery_14_profiling.py>`, and the
:ref:`stable softmax <sphx_glr_gallery_11_stability.py>`.
"""

import time

import matplotlib.pyplot as plt
import torch

FLAMBEAU = "flambeau" in torch.__version__
torch.manual_seed(0)


def by_hand(x):
    """Each line reads and writes the whole tensor."""
    peak = x.amax(1, keepdim=True)
    shifted = x - peak
    weights = torch.exp(shifted)
    return weights / weights.sum(1, keepdim=True)


x = torch.randn(500, 1000)
print("equal to 1e-7:", torch.allclose(by_hand(x), torch.softmax(x, 1), atol=1e-7))
print("rows sum to 1:", torch.allclose(torch.softmax(x, 1).sum(1), torch.ones(500)))

# %%
# Passes over memory
# ------------------
# Arithmetic is cheap, memory is not. By hand, each line reads whole tensors and writes whole tensors; one kernel holds a row
# in the cache, and memory is read once and written once.

traffic = {"amax": (1, 0), "x - peak": (1, 1), "exp": (1, 1), "sum": (1, 0), "/": (1, 1)}
reads, writes = map(sum, zip(*traffic.values(), strict=True))
print(f"by hand: {reads} reads and {writes} writes of the whole; in one kernel 1 and 1")
figure, axes = plt.subplots(figsize=(8, 2.6), layout="constrained")
left = 0
for name, (reads, writes) in traffic.items():
    axes.barh(["by hand"], reads, left=left, color="#1f6f8b", edgecolor="white")
    axes.barh(["by hand"], writes, left=left + reads, color="#e07a5f", edgecolor="white")
    axes.text(
        left + (reads + writes) / 2, 0, name, ha="center", va="center", color="white", fontsize=9
    )
    left += reads + writes
axes.barh(["one kernel"], 1, color="#1f6f8b", label="read", edgecolor="white")
axes.barh(["one kernel"], 1, left=1, color="#e07a5f", label="written", edgecolor="white")
axes.set(xlabel="times the size of x", title="What goes through memory")
axes.legend(loc="upper right")
plt.show()

# %%
# The kernel
# ----------
# In flambeau softmax is a formula of two lines. From it the text below is written, a function of the kernel language; LLVM
# makes machine code of that when the first large tensor comes. ``W`` is the width of the processor's vectors.


class Code:
    """Text that a page shows as code."""

    def __init__(self, text):
        self.text = text

    def _repr_html_(self):
        quoted = self.text.replace("&", "&amp;").replace("<", "&lt;")
        return f'<div class="highlight"><pre>{quoted}</pre></div>'


kernel = Code(torch.debug.kernel_text("softmax")) if FLAMBEAU else None
kernel

# %%
# Its speed
# ---------
# Billions of numbers per second, for rows of 1,000, on the machine that made this page. When a tensor leaves the caches,
# both curves fall to what memory can give, and the one that goes there less often is above.


def seconds(function, x):
    function(x)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        function(x)
        times.append(time.perf_counter() - begin)
    return min(times)


rows = [1, 10, 100, 1000, 4000]
ways = {"torch.softmax": lambda x: torch.softmax(x, 1), "by hand": by_hand, "a copy": torch.clone}
rates = {name: [] for name in ways}
for count in rows:
    data = torch.randn(count, 1000)
    for name, way in ways.items():
        rates[name].append(count * 1000 / seconds(way, data) / 1e9)
figure, axes = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
for (name, values), color in zip(rates.items(), ["#1f6f8b", "#e07a5f", "#b8c4c8"], strict=True):
    axes.loglog(rows, values, marker="o", color=color, label=name)
axes.set(xlabel="rows of 1,000", ylabel="billions of numbers per second")
axes.legend()
plt.show()

# %%
# **What to try next.** Ask for ``torch.debug.kernel_text("sigmoid")``, then ``"silu"``. Run the page with
# ``FLAMBEAU_ENGINE=numpy``: at which size does the kernel begin to pay? ``FLAMBEAU_DEBUG=asm`` prints the machine code.
