"""
Autograd, and a picture of its graph
====================================

**The question.** How does ``y.backward()`` know the derivative of a function that it has never seen as a formula?

**What you need to know.** Tensors, and what a derivative is.

A tensor with ``requires_grad=True`` is watched: each operator that meets it notes itself, with what its own
derivative needs. Going back through these notes, the chain rule multiplies the parts.
"""

import matplotlib.pyplot as plt
import torch

x = torch.tensor(1.5, requires_grad=True)
y = torch.sin(x * x) * torch.exp(-x)
y.backward()
by_hand = 2 * x * torch.cos(x * x) * torch.exp(-x) - torch.sin(x * x) * torch.exp(-x)
print(f"backward: {x.grad.item():.6f}   by hand: {by_hand.item():.6f}")

# %%
# The graph
# ---------
# ``y.grad_fn`` is the last note; ``next_functions`` leads to those before. The picture walks along them.


def levels(node, depth=0, found=None):
    """The nodes below one, each with its longest distance from the end."""
    found = {} if found is None else found
    found[node] = max(depth, found.get(node, 0))
    for before, _ in node.next_functions:
        if before is not None:
            levels(before, depth + 1, found)
    return found


def draw_graph(end, axes):
    depths = levels(end)
    places = {}
    for depth in sorted(set(depths.values())):
        row = [node for node in depths if depths[node] == depth]
        for k, node in enumerate(row):
            places[node] = (k - (len(row) - 1) / 2, depth)
    for node, (across, down) in places.items():
        name = type(node).__name__
        leaf = name == "AccumulateGrad"
        text = "x (its .grad adds up here)" if leaf else name.removesuffix("0")
        color = "#e07a5f" if leaf else "#1f6f8b"
        box = {"boxstyle": "round,pad=0.45", "facecolor": color, "edgecolor": "none"}
        axes.text(
            across, -down, text, ha="center", va="center", color="white", bbox=box, fontsize=9
        )
        for before, _ in node.next_functions:
            if before is not None:
                arrow = {"arrowstyle": "-|>", "color": "#6b7f86", "shrinkA": 13, "shrinkB": 13}
                target = places[before]
                axes.annotate("", (target[0], -target[1]), (across, -down), arrowprops=arrow)
    axes.set(xlim=(-1.2, 1.2), ylim=(-max(depths.values()) - 0.5, 0.5))
    axes.axis("off")


y = torch.sin(x * x) * torch.exp(-x)
names = sorted({type(node).__name__ for node in levels(y.grad_fn)})
print(names)
figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
draw_graph(y.grad_fn, axes)
axes.set_title("sin(x * x) * exp(-x), from its end to x")
plt.show()

# %%
# Derivatives of derivatives
# --------------------------
# ``torch.autograd.grad`` gives the derivative as a tensor; with ``create_graph=True`` it is watched itself, and can
# be differentiated again. A sum over independent places gives the derivative at each.

xs = torch.linspace(-3, 3, 200, requires_grad=True)
curve = torch.tanh(xs)
curves = [curve]
for _ in range(3):
    (slope,) = torch.autograd.grad(curves[-1].sum(), xs, create_graph=True)
    curves.append(slope)
print("at 0:", [f"{c[99:101].mean().item():.3f}" for c in curves])

figure, axes = plt.subplots(figsize=(7.5, 4), layout="constrained")
for order, values in enumerate(curves):
    label = "tanh" + "'" * order
    axes.plot(xs.detach(), values.detach(), label=label, linewidth=2 if order == 0 else 1.3)
axes.axhline(0, color="#b8c4c8", linewidth=0.8)
axes.legend()
axes.set_title("tanh and its first three derivatives")
plt.show()

# %%
# What often goes wrong
# ---------------------
# Gradients add up, until you set them back. And a tensor that was watched cannot become a NumPy array before
# ``detach()`` says that you mean the numbers alone.

w = torch.ones(2, requires_grad=True)
for _ in range(3):
    (w * 2).sum().backward()
print("after three times backward:", w.grad.tolist())
try:
    w.numpy()
except RuntimeError as error:
    print(error)

# %%
# **What to try next.** Draw the graph of ``(x + x) * x``: how many arrows end at ``x``? Ask for a second ``backward()`` of
# the same ``y``, and read the error. Replace ``tanh`` by ``relu``: which derivatives are left?
