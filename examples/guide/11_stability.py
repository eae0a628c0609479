"""
Numerical stability, drawn
==========================

**The question.** The formula is right, and the result is ``nan``. Where do the digits go?

**What you need to know.** :ref:`Types <sphx_glr_gallery_01_tensors.py>`: float32 has 24 binary digits and ends at 3.4e38.

Two things go wrong with correct formulas: a step in the middle leaves the range, or two numbers that are nearly equal
are subtracted, and what is left are their rounding errors.
"""

import matplotlib.pyplot as plt
import torch

# %%
# Out of range on the way
# -----------------------
# softmax divides ``exp(x)`` by its sum. The result lies between 0 and 1; ``exp(100)`` does not fit into float32. Whatever is
# subtracted from all inputs cancels in the quotient: so subtract the largest, and no exponent is above 0.


def naive(x):
    return torch.exp(x) / torch.exp(x).sum()


def shifted(x):
    weights = torch.exp(x - x.max())
    return weights / weights.sum()


x = torch.tensor([10.0, 50.0, 100.0])
print("naive:  ", naive(x).tolist())
print("shifted:", [f"{v:.3g}" for v in shifted(x).tolist()])
print("torch:  ", [f"{v:.3g}" for v in torch.softmax(x, 0).tolist()])

# %%
# The same with logarithms: ``log(softmax(x))`` is -inf where the probability is too small for float32, though its
# logarithm, -100 or so, is an ordinary number. The gradient of that -inf is ``nan``. ``log_softmax`` never leaves the
# logarithms.

scores = torch.tensor([0.0, 120.0], requires_grad=True)
torch.log(torch.softmax(scores, 0))[0].backward()
print("log(softmax):", scores.grad.tolist())
scores.grad = None
torch.log_softmax(scores, 0)[0].backward()
print("log_softmax: ", scores.grad.tolist())

# %%
# Where each way ends
# -------------------
# For a growing gap between two scores: the loss of the wrong one, by three ways. The right curve is a straight line.

gaps = torch.linspace(0, 140, 281)
pairs = torch.stack([torch.zeros_like(gaps), gaps], 1)
exact = torch.nn.functional.softplus(gaps.double())
ways = {
    "-log(exp / sum)": -torch.log(torch.exp(pairs) / torch.exp(pairs).sum(1, keepdim=True))[:, 0],
    "-log(softmax)": -torch.log(torch.softmax(pairs, 1))[:, 0],
    "-log_softmax": -torch.log_softmax(pairs, 1)[:, 0],
}
figure, axes = plt.subplots(figsize=(7.5, 4), layout="constrained")
for (name, values), color, width in zip(
    ways.items(), ["#e07a5f", "#f2b134", "#1f6f8b"], [6, 3.5, 1.5], strict=True
):
    good = values.isfinite()
    last = gaps[good].max().item()
    axes.plot(
        gaps[good], values[good], color=color, linewidth=width, label=f"{name}: to {last:.1f}"
    )
    if last < 140:
        axes.plot(
            last, values[good].max(), marker="x", markersize=12, markeredgewidth=3, color=color
        )
    print(f"{name:16} finite up to a gap of {last:.1f}")
axes.set(
    xlabel="gap between the scores", ylabel="loss", title="Where the loss becomes infinite or nan"
)
axes.legend()
plt.show()

# %%
# Digits that cancel
# ------------------
# ``1 + x`` keeps of a small x only what fits behind the 1. ``log1p`` and ``expm1`` are made for that. Drawn is the relative
# error, by float64; at 1 nothing of the result is right.

small = torch.logspace(-10, 0, 400)
pairs = [
    ("log(1 + x)", torch.log(1 + small), torch.log1p(small.double())),
    ("log1p(x)", torch.log1p(small), torch.log1p(small.double())),
    ("exp(x) - 1", torch.exp(small) - 1, torch.expm1(small.double())),
    ("expm1(x)", torch.expm1(small), torch.expm1(small.double())),
]
figure, axes = plt.subplots(figsize=(7.5, 4), layout="constrained")
for (name, values, right), color in zip(
    pairs, ["#e07a5f", "#1f6f8b", "#f2b134", "#81b29a"], strict=True
):
    error = ((values.double() - right) / right).abs().clamp(min=1e-9)
    axes.loglog(small, error, ".", markersize=3, color=color, label=name)
axes.set(xlabel="x", ylabel="relative error", title="Two functions, each in two ways")
axes.legend(markerscale=4)
plt.show()
tiny = torch.tensor(1e-8)
print(
    "log(1 + 1e-8):",
    torch.log(1 + tiny).item(),
    "  log1p(1e-8):",
    f"{torch.log1p(tiny).item():.4g}",
)

# %%
# And a variance: the mean of the squares minus the square of the mean is the difference of two large numbers.

values = 10_000 + torch.tensor([-1.0, 0.0, 1.0, 0.5])
naive_variance = (values.square().mean() - values.mean().square()).item()
print("by squares:", naive_variance, "  torch.var:", f"{values.var(correction=0).item():.4f}")

# %%
# **What to try next.** Repeat the first picture in float64: where do the curves end there? Write a sigmoid that is right for
# -200, in value and gradient, and compare with ``torch.sigmoid``. Which of these faults does the
# :ref:`adviser <sphx_glr_gallery_13_nan_guard.py>` find?
